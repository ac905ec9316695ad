//! How long files and functions are, and a ratchet that never lets these figures rise.
//!
//! Lengths are lines from a function's signature to its closing brace, as `syn` sees them. Tests and generated code
//! are left out. The figures in force stand in `xtask/ratchet.txt`; `tidy --tighten` writes better ones there.

use super::{is_generated, is_test};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// What is measured over the whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    /// Lines of the longest file.
    file_lines_max: usize,
    /// 99 of 100 functions have at most so many lines.
    function_lines_p99: usize,
    /// Lines of the longest function.
    function_lines_max: usize,
    /// Of 10,000 functions, how many are longer than 70 lines.
    over_70_per_10_000: usize,
}

pub fn check(root: &Path, files: &[PathBuf], tighten: bool, findings: &mut Vec<String>) -> String {
    let mut longest_file = (0, PathBuf::new());
    let mut functions = Vec::new();
    let (mut code_lines, mut comment_lines) = (0, 0);
    for path in files.iter().filter(|path| !is_generated(path) && !is_test(path)) {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        let lines = lines_without_tests(&text);
        longest_file = longest_file.max((lines, path.clone()));
        if path.starts_with("core") {
            comment_lines +=
                text.lines().take(lines).filter(|line| line.trim_start().starts_with("//")).count();
            code_lines += text.lines().take(lines).filter(|line| !line.trim().is_empty()).count();
        }
        match syn::parse_file(&text) {
            Ok(file) => measure(path, &file, &mut functions),
            Err(error) => findings.push(format!("{}: {error}", path.display())),
        }
    }
    functions.sort();
    let longest = functions.last().cloned().unwrap_or_default();
    let over = functions.iter().filter(|function| function.0 > 70).count();
    let now = Figures {
        file_lines_max: longest_file.0,
        function_lines_p99: functions.get(functions.len() * 99 / 100).map_or(0, |function| function.0),
        function_lines_max: longest.0,
        over_70_per_10_000: over * 10_000 / functions.len().max(1),
    };
    hold(root, now, tighten, findings);
    format!(
        "largest file: {} lines ({}); functions: {}, p99 {} lines, longest {} ({}), {} over 70; comments in core: {} %",
        now.file_lines_max,
        longest_file.1.display(),
        functions.len(),
        now.function_lines_p99,
        now.function_lines_max,
        longest.1,
        over,
        comment_lines * 100 / code_lines.max(1),
    )
}

/// The file without the test module at its end.
fn lines_without_tests(text: &str) -> usize {
    text.lines().position(|line| line == "#[cfg(test)]").unwrap_or_else(|| text.lines().count())
}

fn measure(path: &Path, file: &syn::File, functions: &mut Vec<(usize, String)>) {
    struct Walk<'a> {
        path: &'a Path,
        functions: &'a mut Vec<(usize, String)>,
    }
    impl Walk<'_> {
        fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let lines = block.span().end().line - signature.span().start().line + 1;
            self.functions.push((lines, format!("{}: {}", self.path.display(), signature.ident)));
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
            if item.ident != "tests" {
                syn::visit::visit_item_mod(self, item);
            }
        }
    }
    Walk { path, functions }.visit_file(file);
}

/// Compares with the figures in force; lowers them if asked to.
fn hold(root: &Path, now: Figures, tighten: bool, findings: &mut Vec<String>) {
    let path = root.join("xtask/ratchet.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let figure = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok())
            .unwrap_or(usize::MAX)
    };
    let measured = [
        ("file_lines_max", now.file_lines_max),
        ("function_lines_p99", now.function_lines_p99),
        ("function_lines_max", now.function_lines_max),
        ("over_70_per_10_000", now.over_70_per_10_000),
    ];
    for (name, value) in measured {
        if value > figure(name) {
            findings.push(format!(
                "{name} rose from {} to {value}: shorten, do not raise the ratchet",
                figure(name)
            ));
        }
    }
    if tighten {
        let lines: Vec<String> =
            measured.iter().map(|(name, value)| format!("{name} {}", figure(name).min(*value))).collect();
        if let Err(error) = std::fs::write(&path, lines.join("\n") + "\n") {
            findings.push(format!("{}: {error}", path.display()));
        }
    }
}
