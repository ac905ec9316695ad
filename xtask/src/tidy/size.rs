//! How long files and functions are, and how large core is beside the shell.
//!
//! Lengths are lines from a function's signature to its closing brace, as `syn` sees them. Generated code is left out;
//! functions of tests are counted by themselves.

use super::ratchet::Figure;
use super::{is_generated, is_test};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Lengths of what was measured, with a name for each.
#[derive(Debug, Default)]
struct Lengths {
    functions: Vec<(usize, String)>,
    test_functions: Vec<(usize, String)>,
    longest_file: (usize, PathBuf),
    /// Lines of code, tests left out, by rank.
    core: usize,
    shell: usize,
    /// Lines of core that are not empty, and of these comments.
    core_lines: usize,
    core_comments: usize,
}

/// Measures every file; returns the line that says what was measured, and the figures for the ratchet.
pub fn check(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) -> (String, Vec<Figure>) {
    let mut lengths = Lengths::default();
    for path in files.iter().filter(|path| !is_generated(path)) {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        lengths.add(path, &text);
        match syn::parse_file(&text) {
            Ok(file) => measure(path, &file, &mut lengths),
            Err(error) => findings.push(format!("{}: {error}", path.display())),
        }
    }
    lengths.functions.sort();
    lengths.test_functions.sort();
    lengths.report()
}

impl Lengths {
    fn add(&mut self, path: &Path, text: &str) {
        if is_test(path) {
            return;
        }
        let lines = lines_without_tests(text);
        let at = (lines, path.to_path_buf());
        if at > self.longest_file {
            self.longest_file = at;
        }
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        let written: Vec<&str> = text.lines().take(lines).filter(|line| !line.trim().is_empty()).collect();
        let comments = written.iter().filter(|line| is_comment(line)).count();
        if path.starts_with("core") {
            self.core += written.len() - comments;
            self.core_lines += written.len();
            self.core_comments += comments;
        } else if path.starts_with("shell") {
            self.shell += written.len() - comments;
        }
    }

    fn report(&self) -> (String, Vec<Figure>) {
        let longest = self.functions.last().cloned().unwrap_or_default();
        let longest_test = self.test_functions.last().cloned().unwrap_or_default();
        let p99 = self.functions.get(self.functions.len() * 99 / 100).map_or(0, |function| function.0);
        let over = self.functions.iter().filter(|function| function.0 > 70).count();
        let long_tests: Vec<_> = self.test_functions.iter().filter(|function| function.0 > 70).collect();
        let tests_over = long_tests.len();
        let names = long_tests.iter().map(|(lines, name)| format!("\n  {lines} {name}")).collect::<String>();
        let shown = format!(
            "core : shell = {:.2} : 1 ({} : {} lines of code); comments in core: {} %\n\
             largest file: {} lines ({}); functions: {}, p99 {p99} lines, longest {} ({}), {over} over 70; \
             of tests: {}, longest {} ({}), {tests_over} over 70{names}",
            self.core as f64 / self.shell.max(1) as f64,
            self.core,
            self.shell,
            self.core_comments * 100 / self.core_lines.max(1),
            self.longest_file.0,
            self.longest_file.1.display(),
            self.functions.len(),
            longest.0,
            longest.1,
            self.test_functions.len(),
            longest_test.0,
            longest_test.1,
        );
        let advice = "shorten, do not raise the ratchet";
        let figures = [
            ("file_lines_max", self.longest_file.0),
            ("function_lines_p99", p99),
            ("function_lines_max", longest.0),
            ("over_70_per_10_000", over * 10_000 / self.functions.len().max(1)),
            ("test_functions_over_70", tests_over),
        ];
        (shown, figures.map(|(name, now)| Figure { name, now, advice }).to_vec())
    }
}

/// The file without the test module at its end.
fn lines_without_tests(text: &str) -> usize {
    text.lines().position(|line| line == "#[cfg(test)]").unwrap_or_else(|| text.lines().count())
}

/// Adds the length of each function. One in a test file or in a module `tests` is a test's.
fn measure(path: &Path, file: &syn::File, lengths: &mut Lengths) {
    struct Walk<'a> {
        path: &'a Path,
        lengths: &'a mut Lengths,
        tests: usize,
    }
    impl Walk<'_> {
        fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let lines = block.span().end().line - signature.span().start().line + 1;
            let functions =
                if self.tests > 0 { &mut self.lengths.test_functions } else { &mut self.lengths.functions };
            functions.push((lines, format!("{}: {}", self.path.display(), signature.ident)));
        }
    }
    impl<'ast> Visit<'ast> for Walk<'_> {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.add(&item.sig, &item.block);
            syn::visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.add(&item.sig, &item.block);
            syn::visit::visit_impl_item_fn(self, item);
        }
        fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
            let is_test = usize::from(item.ident == "tests");
            self.tests += is_test;
            syn::visit::visit_item_mod(self, item);
            self.tests -= is_test;
        }
    }
    Walk { path, lengths, tests: usize::from(is_test(path)) }.visit_file(file);
}
