//! Takes out of a text what names a person, a place or one machine of many: folders that are not the system's, the names of the host and the user,
//! and identifiers.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::device::account::Account;

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

/// Parts of a home folder's path that name nobody.
const FOLDERS_OF_HOMES: [&str; 12] =
    ["home", "homes", "users", "Users", "export", "mnt", "nfs", "data", "var", "lib", "usr", "opt"];

/// The keys whose values are a path, or several.
const PATHS: [&str; 3] = ["path", "executable", "folders"];

#[derive(Clone, Debug, Default)]
pub struct Private {
    /// Any of the names of the host and the user as a whole word; `None` without names.
    names: Option<Regex>,
}

impl Private {
    /// What is private on this machine and in this process: `account` is the user's, and `read` reads an environment variable.
    pub fn of_system(host: Option<&str>, account: Option<&Account>, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let user = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(read);
        let short = host.and_then(|host| host.split('.').next()).map(str::to_owned);
        let homes = read("HOME").into_iter().chain(account.map(|account| account.home.clone()));
        let of_homes = homes.flat_map(|home| home.split('/').map(str::to_owned).collect::<Vec<_>>());
        let of_homes = of_homes.filter(|part| !FOLDERS_OF_HOMES.contains(&part.as_str()));
        let of_account =
            account.into_iter().flat_map(|account| names_of(&account.full_name).chain([account.user.clone()]));
        Self::new(host.map(str::to_owned).into_iter().chain(short).chain(user).chain(of_homes).chain(of_account))
    }

    /// Names of one letter and names that mean everyone are not removed.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let is_own =
            |name: &String| name.len() > 1 && !["root", "user", "ubuntu", "localhost"].contains(&name.as_str());
        let mut names: Vec<String> = names.into_iter().map(|name| name.trim().to_owned()).filter(is_own).collect();
        // A host's full name before its first part.
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let any: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
        let whole = format!(r"\b{{start-half}}(?:{})\b{{end-half}}", any.join("|"));
        Self { names: Regex::new(&whole).ok().filter(|_| !names.is_empty()) }
    }

    /// The text without them.
    ///
    /// ```
    /// use batchstep::check::doctor::Private;
    /// let private = Private::new(["ada".to_owned(), "node17.example.org".to_owned()]);
    /// let text = "node17.example.org: /home/ada/.venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9";
    /// assert_eq!(private.hide(text), "<name>: <private>/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
    /// ```
    pub fn hide(&self, text: &str) -> String {
        self.without_names(&without_identifiers(&without_folders(text)))
    }

    /// The same for a path, or a list of paths with a colon between two. Unlike in a sentence, what follows a blank belongs to it.
    pub fn hide_paths(&self, list: &str) -> String {
        if !list.split(':').any(is_path) {
            return self.hide(list);
        }
        let hidden = list.split(':').map(|text| if is_path(text) { shown(text) } else { text.to_owned() });
        self.without_names(&without_identifiers(&hidden.collect::<Vec<_>>().join(":")))
    }

    /// The same for every text of the JSON value of a key, keys left as they are.
    pub fn hide_in(&self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) if PATHS.contains(&key) => *text = self.hide_paths(text),
            Value::String(text) => *text = self.hide(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.hide_in(key, value)),
            Value::Object(entries) => entries.iter_mut().for_each(|(key, value)| self.hide_in(key, value)),
            _ => {}
        }
    }

    fn without_names(&self, text: &str) -> String {
        self.names.as_ref().map_or_else(|| text.to_owned(), |names| names.replace_all(text, "<name>").into_owned())
    }
}

/// The full name and its parts. Those of two letters are words of many languages.
fn names_of(full_name: &str) -> impl Iterator<Item = String> {
    let whole = full_name.split(',').next().unwrap_or_default().to_owned();
    let parts: Vec<String> = whole.split_whitespace().filter(|part| part.len() > 2).map(str::to_owned).collect();
    std::iter::once(whole).chain(parts)
}

/// Paths end at a quote, a bracket or a mark.
fn is_mark(c: char) -> bool {
    "\"'`(),;:=<>|[]{}\n".contains(c)
}

/// It also ends at a blank, unless a quote or the following text shows that the blank is a part of the path.
fn is_end(c: char) -> bool {
    c.is_whitespace() || is_mark(c)
}

/// The length of the path that `text` begins with.
fn length_of_path(text: &str, before: Option<char>) -> usize {
    let quote = before.filter(|c| "\"'`".contains(*c));
    if let Some(length) = quote.and_then(|quote| text.find([quote, '\n'])) {
        return length;
    }
    let mut length = text.find(is_end).unwrap_or(text.len());
    // Words that follow belong to it up to the last one with a slash, before another path begins.
    let clause = text[length..].find(is_mark).map_or(text, |end| &text[..length + end]);
    let mut at = length;
    for word in clause[length..].split_inclusive(char::is_whitespace) {
        if is_path(word) {
            break;
        }
        if word.contains('/') {
            length = at + word.trim_end().len();
        }
        at += word.len();
    }
    length
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') || text.starts_with("~/")
}

fn without_folders(text: &str) -> String {
    let (mut out, mut rest, mut before) = (String::new(), text, None);
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        if is_path(rest) && before.is_none_or(is_end) {
            length = rest.find(is_end).unwrap_or(rest.len());
            let short = &rest[..length];
            // `://` is an address of the network, and `:///` one of a file.
            let is_address = short.starts_with("//") && !short.starts_with("///") && before == Some(':');
            if is_address || shown(short) == short {
                out += short;
            } else {
                length = length_of_path(rest, before);
                out += &shown(&rest[..length]);
            }
        } else {
            out.push(first);
        }
        (before, rest) = (rest[..length].chars().next_back(), &rest[length..]);
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
    let rest = parts[known..].join("/");
    // Blanks are in names that people give.
    if rest.contains(char::is_whitespace) { "<private>".to_owned() } else { format!("<private>/{rest}") }
}

/// UUIDs, as in `GPU-8f3c6f2a-...`, and 32 or more hexadecimal digits in a row, as in /etc/machine-id.
static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "(H{4})(?:H{4}(?:-H{4}){3}-H{12}|H{28,}\\b)".replace('H', "[0-9a-fA-F]");
    Regex::new(&pattern).expect("a pattern")
});

/// Shortens identifiers of devices and machines to four digits, enough to distinguish those of one machine.
fn without_identifiers(text: &str) -> String {
    IDENTIFIER.replace_all(text, "$1\u{2026}").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_lose_their_owners_and_identifiers_keep_four_digits() {
        let private = Private::default();
        for (text, expected) in [
            // The system's folders stay.
            ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            ("(/home/ada/x/y.toml)", "(<private>/y.toml)"),
            ("~/.venv/lib/libcudnn.so.9 does not load", "<private>/lib/libcudnn.so.9 does not load"),
            ("LD_LIBRARY_PATH=/scratch/ada/cuda:/usr/lib", "LD_LIBRARY_PATH=<private>/cuda:/usr/lib"),
            ("/usrlocal/secret", "<private>/secret"),
            ("https://www.nvidia.com/drivers", "https://www.nvidia.com/drivers"),
            ("1/2 and PCIe 4.0 x16/x8", "1/2 and PCIe 4.0 x16/x8"),
            // With blanks.
            ("/home/ada/My Secret Plans/x/y.toml: no such file", "<private>/y.toml: no such file"),
            ("cannot open `/home/ada/My Secrets`: no", "cannot open `<private>`: no"),
            ("/home/ada/My Env/lib/libz.so, /usr/lib/x 1/2", "<private>/lib/libz.so, /usr/lib/x 1/2"),
            ("/home/ada/bin/python3 was not found", "<private>/python3 was not found"),
            ("/a/b c/d and /e/f/g", "<private>/d and <private>/g"),
            ("see file:///home/ada/x.html", "see file:<private>/x.html"),
            // Identifiers.
            ("GPU-8f3c6f2a-1b2c-3d4e-5f60-718293a4b5c6,1", "GPU-8f3c\u{2026},1"),
            ("MIG-GPU-8F3C6F2A-1b2c-3d4e-5f60-718293a4b5c6/1/0", "MIG-GPU-8F3C\u{2026}/1/0"),
            ("machine 0123456789abcdef0123456789abcdef.", "machine 0123\u{2026}."),
            ("0000:3b:00.0, cuda 13.0, f32, 0x1f, deadbeef", "0000:3b:00.0, cuda 13.0, f32, 0x1f, deadbeef"),
        ] {
            assert_eq!(private.hide(text), expected);
        }
        let list = "/home/ada/My Cuda:/usr/lib:lib::/home/ada/envs/x/lib";
        assert_eq!(private.hide_paths(list), "<private>:/usr/lib:lib::<private>/lib");
        assert_eq!(private.hide_paths("PCI_BUS_ID"), "PCI_BUS_ID");
    }

    #[test]
    fn names_go_as_whole_words_wherever_they_are() {
        let private =
            Private::of_system(Some("lab7.example.org"), None, &|name| (name == "USER").then(|| "ada".to_owned()));
        assert_eq!(private.hide("ada on lab7, lab7.example.org"), "<name> on <name>, <name>");
        assert_eq!(private.hide("an adaptive Adam, lab70, radar"), "an adaptive Adam, lab70, radar");
        let everyone = Private::of_system(Some("localhost"), None, &|_| Some("root".to_owned()));
        assert_eq!(everyone.hide("root at localhost"), "root at localhost");
    }

    #[test]
    fn names_of_the_home_folder_and_the_account_go() {
        let account = Account {
            user: "al1815".into(),
            full_name: "Ada King Lovelace,Room 5,+44".into(),
            home: "/home/analytics/countess".into(),
        };
        let read = |name: &str| (name == "HOME").then(|| "/export/home/engine-group/ada".to_owned());
        let private = Private::of_system(None, Some(&account), &read);
        for name in ["ada", "engine-group", "al1815", "Ada King Lovelace", "Lovelace", "analytics", "countess"] {
            assert_eq!(private.hide(&format!("of {name}: home")), "of <name>: home");
        }
    }

    #[test]
    fn every_text_of_a_document_is_gone_through() {
        let mut value = serde_json::json!({"a": ["/home/ada/b", 1], "c": {"d": "ada", "path": "/home/x/My File"}});
        Private::new(["ada".to_owned()]).hide_in("", &mut value);
        assert_eq!(value, serde_json::json!({"a": ["<private>/b", 1], "c": {"d": "<name>", "path": "<private>"}}));
    }
}
