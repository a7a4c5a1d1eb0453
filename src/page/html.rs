//! Markup with all text escaped. Names of elements and attributes are literals of this program; content from data goes in as text
//! or as the value of an attribute, and can be nothing else.

use crate::foreign;

#[derive(Default)]
pub(super) struct Html(String);

/// An attribute of an element.
pub(super) type Attribute<'a> = (&'static str, &'a str);

impl Html {
    pub fn literal(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    pub fn text(&mut self, text: &str) {
        for c in foreign::lines(text).chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
    }

    pub fn open(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.0.push_str(&format!("<{name}"));
        for (attribute, value) in attributes {
            self.0.push_str(&format!(" {attribute}=\""));
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    pub fn close(&mut self, name: &'static str) {
        self.0.push_str(&format!("</{name}>"));
    }

    pub fn element(&mut self, name: &'static str, attributes: &[Attribute], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// Script, style or data of the page itself, which the caller has made safe to embed.
    pub fn embedded(&mut self, name: &'static str, attributes: &[Attribute], content: &str) {
        self.open(name, attributes);
        self.0.push_str(content);
        self.close(name);
        self.0.push('\n');
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// JSON that can be embedded in a script element: nothing in it ends the element or a line of script.
pub(super) fn json(value: &serde_json::Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text.push_str(&format!("\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        let mut html = Html::default();
        html.element("td", &[("title", "\" onload='x' \u{0}")], "</td><script>alert(1)</script>&amp;");
        assert_eq!(
            html.into_string(),
            "<td title=\"&quot; onload=&#39;x&#39; \\u0000\">&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;</td>"
        );
    }

    #[test]
    fn json_cannot_end_its_element_and_says_the_same() {
        let value = serde_json::json!({"</script><!--": "a&b\u{2028}\u{2029}"});
        let text = json(&value);
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
