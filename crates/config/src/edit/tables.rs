//! Adds tables to a list inside a job, such as `[[job.blog]]`, in the style that the file uses for that list.

use super::{ConfigText, EditError, render_key};
use crate::tree::{Data, TomlValue};

/// The keys and values of a table, in order.
pub type Pairs = Vec<(&'static str, toml::Value)>;

impl ConfigText {
    /// Adds tables to the list `key` of a job: with headers, or as inline tables if the file uses those.
    pub fn add_tables(&mut self, job: &str, key: &str, tables: &[Pairs]) -> Result<(), EditError> {
        if tables.is_empty() {
            return Ok(());
        }
        let owner = self.find_job(job)?.clone();
        let Data::TomlTable(inner) = &owner.data else { return Err(self.commands(key, &owner.span)) };
        match inner.find(key) {
            Some(list) if self.is_list_of_headers(list) => {
                let end = self.last_place(list);
                self.add_headers(end, key, tables)
            }
            Some(TomlValue { span, data: Data::Array(items) }) => {
                let (span, items) = (span.clone(), items.clone());
                if items.is_empty() {
                    self.splice(span, &self.inline_list(tables))
                } else {
                    let inline: Vec<String> = tables.iter().map(|table| self.inline(table)).collect();
                    let between = format!(",{}", self.gap(&items, &span));
                    self.push_item(&span, &items, &inline.join(&between))
                }
            }
            Some(other) => Err(self.commands(key, &other.span)),
            None if self.is_header(&owner) => {
                let end = self.last_place(&owner);
                self.add_headers(end, key, tables)
            }
            None => {
                let pair = format!("{} = {}", render_key(key), self.inline_list(tables));
                self.insert_pair(&owner, &pair)
            }
        }
    }

    /// Removes the table with this `id` from the list `key` of a job; `false` if there is none.
    pub fn remove_table(&mut self, job: &str, key: &str, id: &str) -> Result<bool, EditError> {
        let owner = self.find_job(job)?.clone();
        let Data::TomlTable(inner) = &owner.data else { return Err(self.commands(key, &owner.span)) };
        let items = inner.find(key).map_or(&[][..], TomlValue::items);
        let has_id = |item: &&TomlValue| item.as_table().and_then(|item| item.find_text("id")) == Some(id);
        match items.iter().find(has_id) {
            Some(found) => self.remove_item(items, found).map(|()| true),
            None => Ok(false),
        }
    }

    /// Writes `[[job.KEY]]` blocks after the line that `end` is in.
    fn add_headers(&mut self, end: usize, key: &str, tables: &[Pairs]) -> Result<(), EditError> {
        let newline = self.newline();
        let at = self.line_end(end);
        let mut blocks = String::new();
        if !self.text()[..at].ends_with('\n') {
            blocks.push_str(newline);
        }
        for table in tables {
            let lines = self.lines_of(table);
            blocks.push_str(&format!("{newline}[[job.{}]]{newline}{lines}", render_key(key)));
        }
        self.splice(at..at, &blocks)
    }

    fn inline_list(&self, tables: &[Pairs]) -> String {
        let newline = self.newline();
        let lines: String =
            tables.iter().map(|table| format!("  {},{newline}", self.inline(table))).collect();
        format!("[{newline}{lines}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_a_list_is_removed_with_its_comment_and_nothing_else() {
        let headers = "[[job]]\nname = \"b\"\n\n[[job.blog]]\nid = \"a\"\n\n# the second\n[[job.blog]]\nid = \"c\"\n\n[app]\n";
        let mut document = ConfigText::parse(headers).unwrap();
        assert!(document.remove_table("b", "blog", "c").unwrap());
        assert_eq!(document.text(), "[[job]]\nname = \"b\"\n\n[[job.blog]]\nid = \"a\"\n\n[app]\n");
        assert!(!document.remove_table("b", "blog", "c").unwrap());
        let inline = "[[job]]\nname = \"b\"\nblog = [\n  { id = \"a\" },\n  { id = \"c\" }, # last\n]\n";
        let mut document = ConfigText::parse(inline).unwrap();
        assert!(document.remove_table("b", "blog", "a").unwrap());
        assert_eq!(document.text(), "[[job]]\nname = \"b\"\nblog = [\n  { id = \"c\" }, # last\n]\n");
    }

    fn blog(id: &str) -> Pairs {
        vec![("id", id.into()), ("url", format!("https://{id}.example/").into())]
    }

    fn ids(text: &str) -> Vec<Vec<String>> {
        let root: toml::Table = text.parse().unwrap();
        let jobs = root["job"].as_array().unwrap();
        jobs.iter()
            .map(|job| {
                let blogs = job.get("blog").and_then(toml::Value::as_array).into_iter().flatten();
                blogs.map(|blog| blog["id"].as_str().unwrap().to_owned()).collect()
            })
            .collect()
    }

    #[test]
    fn tables_join_the_list_as_the_file_writes_it() {
        let other = "# next\n[[job]]\nname = \"other\"\nkind = \"press\"\n";
        for file in [
            // Header lines, with comments, before another job.
            format!(
                "# top\n[[job]]\nname = \"b\"  # short\nkind = \"blogs\"\n\n[[job.blog]]\nid = \"a\"\nurl = \"x\" # one\n\n{other}"
            ),
            // None yet.
            format!("[[job]]\nname = \"b\"\nkind = \"blogs\" # none\n\n{other}"),
            // No line end at the end.
            format!("{other}[[job]]\nname = \"b\"\nkind = \"blogs\""),
            // Inline tables, in one line and in several.
            format!("[[job]]\nname = \"b\"\nblog = [{{ id = \"a\", url = \"x\" }}] # c\n{other}"),
            format!("[[job]]\nname = \"b\"\nblog = [\n  {{ id = \"a\", url = \"x\" }}, # c\n]\n{other}"),
            format!("[[job]]\nname = \"b\"\nblog = []\n{other}"),
            // A job that is inline itself.
            "job = [{ name = \"b\", kind = \"blogs\" }]\n".to_owned(),
            // Windows.
            format!(
                "[[job]]\r\nname = \"b\"\r\n\r\n[[job.blog]]\r\nid = \"a\"\r\n{}",
                other.replace('\n', "\r\n")
            ),
        ] {
            let had: Vec<String> = ids(&file).into_iter().flatten().collect();
            let mut document = ConfigText::parse(&file).unwrap();
            document.add_tables("b", "blog", &[blog("p"), blog("q")]).unwrap();
            let text = document.text();
            let now: Vec<Vec<String>> = ids(text).into_iter().filter(|list| !list.is_empty()).collect();
            let wanted: Vec<String> = had.into_iter().chain(["p".to_owned(), "q".to_owned()]).collect();
            assert_eq!(now, [wanted], "{text}");
            for line in file.lines().filter(|line| line.contains('#')) {
                let comment = &line[line.find('#').unwrap()..];
                assert!(text.contains(comment), "`{comment}` is lost:\n{text}");
            }
            assert_eq!(file.contains("\r\n"), text.contains("\r\n"));
        }
    }

    #[test]
    fn a_job_that_is_not_there_is_told() {
        let mut document = ConfigText::parse("[[job]]\nname = \"a\"\n").unwrap();
        assert!(matches!(document.add_tables("b", "blog", &[blog("p")]), Err(EditError::NoSuchJob(_))));
    }
}
