//! Import circles between modules.
//!
//! An arrow leads from a module to the module that *defines* what it names: paths that begin with `crate`, `self` or
//! `super`, in `use` items and elsewhere, followed through re-exports. An arrow between two modules is an arrow between
//! the two children of their lowest common parent. A parent and its children may know each other. Test code is left
//! out. Modules that reach each other by arrows are a circle.

use super::{is_generated, is_test};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A module's path within its crate: `["raft", "election"]`; the root is empty.
type Module = Vec<String>;

/// One crate's product modules.
#[derive(Debug, Default)]
pub struct Crate {
    modules: BTreeMap<Module, Names>,
}

/// What one module defines, renames and names.
#[derive(Debug, Default)]
struct Names {
    defined: BTreeSet<String>,
    /// By the name that it has here: the path it was imported from.
    imported: BTreeMap<String, Vec<String>>,
    /// `use path::*`.
    globs: Vec<Vec<String>>,
    /// Every path that begins with `crate`, `self` or `super`.
    paths: BTreeSet<Vec<String>>,
}

/// Finds the circles of every crate; returns their list and how many modules are in one.
pub fn check(root: &Path, files: &[PathBuf]) -> (Vec<String>, usize) {
    let mut crates: BTreeMap<PathBuf, Crate> = BTreeMap::new();
    for path in files.iter().filter(|path| !is_generated(path) && !is_test(path)) {
        let Some((package, module)) = place(path) else { continue };
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        crates.entry(package).or_default().add(module, &text);
    }
    let mut shown = Vec::new();
    let mut in_circles = 0;
    for (package, krate) in &crates {
        for (parent, circle) in krate.circles() {
            in_circles += circle.len();
            let parent = if parent.is_empty() { String::new() } else { format!("/{}", parent.join("/")) };
            shown.push(format!("circle in {}{parent}: {}", package.display(), circle.join(" ")));
        }
    }
    (shown, in_circles)
}

/// `core/quorum/src/raft/election.rs` → `core/quorum`, `["raft", "election"]`.
fn place(path: &Path) -> Option<(PathBuf, Module)> {
    let parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let src = parts.iter().position(|part| part == "src")?;
    let mut module: Module = parts[src + 1..].to_vec();
    let last = module.pop()?;
    let stem = last.strip_suffix(".rs")?;
    if stem != "mod" && !(module.is_empty() && (stem == "lib" || stem == "main")) {
        module.push(stem.to_owned());
    }
    Some((parts[..src].iter().collect(), module))
}

impl Crate {
    /// Adds a module's text. What cannot be parsed is left to `size`, which reports it.
    pub fn add(&mut self, module: Module, text: &str) {
        let Ok(file) = syn::parse_file(text) else { return };
        let mut gather = Gather::default();
        gather.visit_file(&file);
        let Ok(tokens) = text.parse::<TokenStream>() else { return };
        walk(tokens, &gather.test_lines, &mut gather.names.paths);
        let names = self.modules.entry(module).or_default();
        names.defined.extend(gather.names.defined);
        names.imported.extend(gather.names.imported);
        names.globs.extend(gather.names.globs);
        names.paths.extend(gather.names.paths);
    }

    /// The circles: the parent module, and the names of its children that reach each other.
    pub fn circles(&self) -> Vec<(Module, Vec<String>)> {
        let mut graphs: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, names) in &self.modules {
            for path in names.paths.iter().chain(&names.globs) {
                let Some(to) = self.resolve(from, path, 0) else { continue };
                let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                if shared == from.len() || shared == to.len() {
                    continue;
                }
                let graph = graphs.entry(from[..shared].to_vec()).or_default();
                graph.entry(from[shared].clone()).or_default().insert(to[shared].clone());
            }
        }
        let mut found = Vec::new();
        for (parent, graph) in graphs {
            found.extend(components(&graph).into_iter().map(|circle| (parent.clone(), circle)));
        }
        found
    }

    /// The module that defines what `path` names from within `from`.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        if depth > 16 {
            return None;
        }
        let mut at = from.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {}
            first => {
                let mut child = at.clone();
                child.push(first.to_owned());
                if !self.modules.contains_key(&child) {
                    return None;
                }
            }
        }
        while rest.first().is_some_and(|part| part == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            let mut child = at.clone();
            child.push(name.clone());
            if !self.modules.contains_key(&child) {
                break;
            }
            at = child;
            rest = &rest[1..];
        }
        let Some(name) = rest.first() else { return Some(at) };
        Some(self.definer(&at, name, rest, depth).unwrap_or(at))
    }

    /// Where `name`, seen in module `at`, comes from, if not from there.
    fn definer(&self, at: &Module, name: &String, rest: &[String], depth: usize) -> Option<Module> {
        let names = self.modules.get(at)?;
        if names.defined.contains(name) {
            return None;
        }
        if let Some(origin) = names.imported.get(name) {
            let whole: Vec<String> = origin.iter().chain(&rest[1..]).cloned().collect();
            return self.resolve(at, &whole, depth + 1);
        }
        names.globs.iter().find_map(|glob| {
            let module = self.resolve(at, glob, depth + 1)?;
            let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
            let known = self.modules.get(&module)?;
            let has = known.defined.contains(name) || known.imported.contains_key(name);
            has.then(|| self.resolve(at, &whole, depth + 1)).flatten()
        })
    }
}

/// Sets of nodes that reach each other, of two or more (Tarjan would be faster; the graphs are small).
fn components(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|node| (node, reach(graph, node))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (node, there) in &reached {
        let mutual: Vec<String> = there
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(*node)))
            .map(|other| (*other).clone())
            .collect();
        if mutual.len() > 1 {
            found.insert(mutual);
        }
    }
    found.into_iter().collect()
}

fn reach<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, start: &'a String) -> BTreeSet<&'a String> {
    let mut open = vec![start];
    let mut seen = BTreeSet::new();
    while let Some(node) = open.pop() {
        for next in graph.get(node).into_iter().flatten() {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

/// Definitions, imports, and the lines of test code, of one file.
#[derive(Default)]
struct Gather {
    names: Names,
    test_lines: Vec<(usize, usize)>,
    depth: usize,
}

impl Gather {
    /// `path` is known here as `name`.
    fn bring_in(&mut self, name: &syn::Ident, path: Vec<String>) {
        if matches!(path[0].as_str(), "crate" | "self" | "super") {
            self.names.paths.insert(path.clone());
        }
        self.names.imported.insert(name.to_string(), path);
    }

    fn define(&mut self, name: &syn::Ident) {
        self.names.defined.insert(name.to_string());
    }

    fn import(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let with =
            |name: &syn::Ident| prefix.iter().cloned().chain([name.to_string()]).collect::<Vec<String>>();
        match tree {
            syn::UseTree::Path(path) => self.import(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = prefix.last() {
                    self.names.imported.insert(last.clone(), prefix.to_vec());
                }
            }
            syn::UseTree::Name(name) => {
                self.bring_in(&name.ident, with(&name.ident));
            }
            syn::UseTree::Rename(rename) => {
                self.bring_in(&rename.rename, with(&rename.ident));
            }
            syn::UseTree::Glob(_) => self.names.globs.push(prefix.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.import(prefix, item)),
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
    })
}

impl<'ast> Visit<'ast> for Gather {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = match item {
            syn::Item::Const(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            syn::Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            syn::Item::Mod(item) => (&item.attrs, None),
            syn::Item::Static(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Use(item) => (&item.attrs, None),
            syn::Item::Impl(item) => (&item.attrs, None),
            _ => return,
        };
        if is_for_tests(attributes) {
            self.test_lines.push((item.span().start().line, item.span().end().line));
            return;
        }
        if let (Some(name), 0) = (name, self.depth) {
            self.define(name);
        }
        if let syn::Item::Use(item) = item {
            self.import(&[], &item.tree);
        }
        self.depth += 1;
        syn::visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_for_tests(&item.attrs) {
            self.test_lines.push((item.span().start().line, item.span().end().line));
            return;
        }
        syn::visit::visit_impl_item_fn(self, item);
    }
}

/// Every `crate::…`, `self::…`, `super::…` outside of test code, macros' arguments included.
fn walk(tokens: TokenStream, test_lines: &[(usize, usize)], paths: &mut BTreeSet<Vec<String>>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => walk(group.stream(), test_lines, paths),
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                let is_test = test_lines.iter().any(|(first, last)| (*first..=*last).contains(&line));
                let mut path = vec![ident.to_string()];
                while is_colon(tokens.peek()) {
                    tokens.next();
                    tokens.next();
                    match tokens.peek() {
                        Some(TokenTree::Ident(part)) => path.push(part.to_string()),
                        _ => break,
                    }
                    tokens.next();
                }
                let begins = matches!(path[0].as_str(), "crate" | "self" | "super");
                if begins && path.len() > 1 && !is_test {
                    paths.insert(path);
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The first colon of `::`.
fn is_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint)
}

#[cfg(test)]
mod tests {
    use super::Crate;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let mut krate = Crate::default();
        for (module, text) in files {
            let module = module.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            krate.add(module, text);
        }
        krate
            .circles()
            .into_iter()
            .map(|(parent, circle)| format!("{}: {}", parent.join("/"), circle.join(" ")))
            .collect()
    }

    #[test]
    fn two_modules_that_import_each_other_are_a_circle() {
        let found = circles(&[
            ("", "mod a; mod b;"),
            ("a", "use crate::b::B; struct A;"),
            ("b", "struct B(super::a::A);"),
        ]);
        assert_eq!(found, [": a b"]);
    }

    #[test]
    fn a_parent_and_its_child_may_know_each_other() {
        let found =
            circles(&[("", ""), ("a", "mod b; use b::B; struct A;"), ("a/b", "use super::A; struct B;")]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_re_export_does_not_hide_an_arrow() {
        let root = "mod a; mod b; pub use a::*; pub use b::Second as Other;";
        let found = circles(&[
            ("", root),
            ("a", "pub struct First; fn f() { let _: crate::Other; }"),
            ("b", "pub struct Second; use crate::First;"),
        ]);
        assert_eq!(found, [": a b"]);
    }

    #[test]
    fn arrows_between_folders_count_for_the_folders() {
        let found = circles(&[
            ("", ""),
            ("a/x", "use crate::b::y::Y;"),
            ("b", ""),
            ("a", ""),
            ("b/y", "pub struct Y;"),
            ("b/z", "macro_rules! m { () => {} } fn f() { println!(\"{}\", crate::a::x::N) }"),
        ]);
        assert_eq!(found, [": a b"]);
    }

    #[test]
    fn test_code_draws_no_arrow() {
        let found = circles(&[
            ("", ""),
            ("a", "use crate::b::B;"),
            ("b", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
