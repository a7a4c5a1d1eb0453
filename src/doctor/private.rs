//! Takes out of a text what names a person or a place: folders that are not the system's, the host's name, the user's.

/// Folders that every machine of a kind has. What lies elsewhere names its owner, a project or a site.
const PUBLIC: [&str; 14] = [
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt/conda",
    "/opt/nvidia",
    "/opt/cuda",
    "/proc",
    "/run/nvidia",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/dpkg",
];

/// The folders of a path from which on it says how something is installed, and no more.
const KINDS: [&str; 5] = ["site-packages", "dist-packages", "lib", "lib64", "targets"];

/// What is taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Private {
    /// Names of the host and the user.
    names: Vec<String>,
}

impl Private {
    /// Of this machine and process.
    pub fn of_system(host: Option<&str>, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let user = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(read);
        let short = host.and_then(|host| host.split('.').next()).map(str::to_owned);
        Self::new(host.map(str::to_owned).into_iter().chain(short).chain(user))
    }

    /// Names of one letter, and those that stand for everyone, are left.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let is_own =
            |name: &String| name.len() > 1 && !["root", "user", "ubuntu", "localhost"].contains(&name.as_str());
        let mut names: Vec<String> = names.into_iter().map(|name| name.trim().to_owned()).filter(is_own).collect();
        // A host's full name before its first part.
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.dedup();
        Self { names }
    }

    /// The text without them.
    ///
    /// ```
    /// use batchstep::doctor::Private;
    /// let private = Private::new(["ada".to_owned(), "node17.example.org".to_owned()]);
    /// let text = "node17.example.org: /home/ada/.venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9";
    /// assert_eq!(private.hide(text), "<name>: <private>/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
    /// ```
    pub fn hide(&self, text: &str) -> String {
        self.without_names(&without_folders(text))
    }

    /// The same for every text of a JSON value, keys left as they are.
    pub fn hide_in(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = self.hide(text),
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| self.hide_in(value)),
            serde_json::Value::Object(entries) => entries.values_mut().for_each(|value| self.hide_in(value)),
            _ => {}
        }
    }

    fn without_names(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for name in &self.names {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find(name.as_str()) {
                let (before, after) = (&rest[..at], &rest[at + name.len()..]);
                let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                let whole = !is_word(before.chars().next_back()) && !is_word(after.chars().next());
                out += before;
                out += if whole { "<name>" } else { name };
                rest = after;
            }
            out += rest;
            text = out;
        }
        text
    }
}

/// Paths end at a space, a quote, a bracket or a mark.
fn is_end(c: char) -> bool {
    c.is_whitespace() || "\"'`(),;:=<>|[]{}".contains(c)
}

fn without_folders(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let begins = (rest.starts_with('/') || rest.starts_with("~/")) && before.is_none_or(is_end);
        if begins {
            let length = rest.find(is_end).unwrap_or(rest.len());
            let (path, after) = rest.split_at(length);
            // `://` is an address of the network.
            let is_address = path.starts_with("//") && before == Some(':');
            out += &if is_address { path.to_owned() } else { shown(path) };
            (before, rest) = (path.chars().next_back(), after);
        } else {
            out.push(first);
            (before, rest) = (Some(first), &rest[first.len_utf8()..]);
        }
    }
    out
}

fn shown(path: &str) -> String {
    let is_within =
        |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if path == "/" || PUBLIC.iter().any(is_within) {
        return path.to_owned();
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let known = parts.iter().position(|part| KINDS.contains(part)).unwrap_or(parts.len().saturating_sub(1));
    format!("<private>/{}", parts[known..].join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_folders_stay_and_others_lose_their_owners() {
        let private = Private::default();
        for (text, expected) in [
            ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            ("(/home/ada/x/y.toml)", "(<private>/y.toml)"),
            ("~/.venv/lib/libcudnn.so.9 does not load", "<private>/lib/libcudnn.so.9 does not load"),
            ("LD_LIBRARY_PATH=/scratch/ada/cuda:/usr/lib", "LD_LIBRARY_PATH=<private>/cuda:/usr/lib"),
            ("/usrlocal/secret", "<private>/secret"),
            ("https://www.nvidia.com/drivers", "https://www.nvidia.com/drivers"),
            ("1/2 and PCIe 4.0 x16/x8", "1/2 and PCIe 4.0 x16/x8"),
        ] {
            assert_eq!(private.hide(text), expected);
        }
    }

    #[test]
    fn names_go_as_whole_words_wherever_they_are() {
        let private = Private::of_system(Some("lab7.example.org"), &|name| (name == "USER").then(|| "ada".to_owned()));
        assert_eq!(private.hide("ada on lab7, lab7.example.org"), "<name> on <name>, <name>");
        assert_eq!(private.hide("an adaptive Adam, lab70, radar"), "an adaptive Adam, lab70, radar");
        let everyone = Private::of_system(Some("localhost"), &|_| Some("root".to_owned()));
        assert_eq!(everyone, Private::default());
    }

    #[test]
    fn every_text_of_a_document_is_gone_through() {
        let mut value = serde_json::json!({"a": ["/home/ada/b", 1], "c": {"d": "ada"}});
        Private::new(["ada".to_owned()]).hide_in(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["<private>/b", 1], "c": {"d": "<name>"}}));
    }
}
