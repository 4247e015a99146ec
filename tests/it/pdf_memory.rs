//! The memory cost of hostile PDFs, measured in a process that does nothing else.

use std::process::{Command, Stdio};

use tsuzuki::parse::pdf::{Limit, text};

const MOST_GROWTH_KIB: u64 = 96 * 1024;
const HELLO: &str = "BT /F1 12 Tf 10 700 Td (Hello) Tj ET";

/// A file whose only text is `Hello`, on its first page.
struct Pdf(String);

impl Pdf {
    fn new(kids: &str) -> Self {
        Pdf("%PDF-1.7\n".to_owned())
            .put(1, "<</Type/Catalog/Pages 2 0 R>>")
            .put(2, &format!("<</Kids[3 0 R {kids}]>>"))
            .put(3, "<</Type/Page/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>")
            .stream(4, "", HELLO)
            .put(5, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    }

    fn put(mut self, number: u32, body: &str) -> Self {
        self.0.push_str(&format!("{number} 0 obj {body}\nendobj\n"));
        self
    }

    fn stream(self, number: u32, keys: &str, data: &str) -> Self {
        self.put(number, &format!("<<{keys}/Length {}>>stream\n{data}\nendstream", data.len()))
    }
}

fn entries(count: u32) -> String {
    (0..count).map(|number| format!("/{number:x} 1")).collect()
}

/// Many pages that all point to the same resources.
fn pages_that_share_resources() -> Pdf {
    let pages = 10..3000;
    let kids: String = pages.clone().map(|number| format!("{number} 0 R ")).collect();
    let pdf = Pdf::new(&kids).put(6, &format!("<</Font<<{}>>>>", entries(900)));
    pages.fold(pdf, |pdf, number| pdf.put(number, "<</Contents 7 0 R/Resources 6 0 R>>"))
}

/// Many pages, each with its own resources.
fn pages_with_resources() -> Pdf {
    let pages = 10..4000;
    let kids: String = pages.clone().map(|number| format!("{number} 0 R ")).collect();
    let own = format!("<</Contents 7 0 R/Resources<</Font<<{}>>>>>>", entries(300));
    pages.fold(Pdf::new(&kids), |pdf, number| pdf.put(number, &own))
}

/// Forms in forms, each with large resources.
fn forms_with_resources() -> Pdf {
    let large = entries(60_000);
    let mut pdf = Pdf::new("9 0 R").put(9, "<</Contents 8 0 R/Resources<</XObject<</X 10 0 R>>>>>>");
    pdf = pdf.stream(8, "", "/X Do");
    for number in 10..22 {
        let next = number + 1;
        let keys = format!("/Subtype/Form/Resources {} 0 R", number + 100);
        pdf = pdf
            .stream(number, &keys, "/X Do")
            .put(number + 100, &format!("<</XObject {} 0 R{large}>>", number + 200));
        pdf = pdf.put(number + 200, &format!("<</X {next} 0 R{large}>>"));
    }
    pdf
}

/// Many long lists before one operator.
fn operands_without_end() -> Pdf {
    let list = format!("[{}]", "1 ".repeat(140_000));
    Pdf::new("9 0 R").put(9, "<</Contents 8 0 R>>").stream(8, "", &list.repeat(30))
}

#[test]
fn hostile_pdfs_cost_little_memory() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pdf_memory::the_process_that_is_measured", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
#[ignore = "runs inside hostile_pdfs_cost_little_memory, in a process of its own"]
fn the_process_that_is_measured() {
    type Make = fn() -> Pdf;
    let files: [(&str, Make); 4] = [
        ("operands", operands_without_end),
        ("own", pages_with_resources),
        ("forms", forms_with_resources),
        ("shared", pages_that_share_resources),
    ];
    for (name, file) in files {
        let file = file().0;
        // Creating the file took memory, too: reset the peak here.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = peak_kib();
        let found = text(file.as_bytes(), Limit::default()).unwrap();
        let growth = peak_kib() - before;
        assert_eq!(found.text, "Hello", "{name}");
        assert!(growth < MOST_GROWTH_KIB, "{name} grew by {growth} KiB");
    }
}

/// The peak memory of this process since the last reset.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
