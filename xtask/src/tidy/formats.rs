//! Debug formats in log lines: an operator reads `broker=3`, and not `broker=Some(BrokerId(3))`.
//!
//! Lines at DEBUG and TRACE are for engineers and may have them.

use super::{is_generated, is_test};
use proc_macro2::{TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use syn::visit::Visit;

/// Macros whose lines operators read.
const LEVELS: &[&str] = &["info", "warn", "error"];

pub fn check(root: &Path, files: &[PathBuf], findings: &mut Vec<String>) {
    let products =
        files.iter().filter(|path| !is_test(path) && !is_generated(path) && !path.starts_with("lab"));
    for path in products {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        for line in lines(&text) {
            findings.push(format!("{}:{line}: a Debug format in a log line", path.display()));
        }
    }
}

/// The lines on which a macro of [`LEVELS`] shows a value by its Debug format.
fn lines(text: &str) -> Vec<usize> {
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let mut found = Found::default();
    found.visit_file(&file);
    found.lines
}

#[derive(Default)]
struct Found {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let name = called.path.segments.last().map(|segment| segment.ident.to_string());
        if name.is_some_and(|name| LEVELS.contains(&name.as_str())) {
            self.look_into(called.tokens.clone());
        }
    }
}

impl Found {
    /// A field is `?value` or `name = ?value`; a text has `{value:?}` or `{value:#?}`.
    fn look_into(&mut self, tokens: TokenStream) {
        let mut begins = true;
        for token in tokens {
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == '?' && begins => {
                    self.lines.push(punct.span().start().line);
                }
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if text.contains(":?}") || text.contains(":#?}") {
                        self.lines.push(literal.span().start().line);
                    }
                }
                _ => {}
            }
            begins = matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), ',' | '='));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn debug_formats_are_found_where_operators_read() {
        let code = "fn f() -> Option<()> {\n warn!(?broker, \"gone\");\n tracing::error!(code = ?code, \"no\");\n\
                    info!(\"{voters:?}\");\n warn!(broker = %get()?, \"fine\");\n debug!(?all, \"fine\");\n None }";
        assert_eq!(lines(code), [2, 3, 4]);
    }

    #[test]
    fn test_code_may_log_what_it_likes() {
        assert!(lines("mod tests { fn f() { warn!(?broker); } }").is_empty());
    }
}
