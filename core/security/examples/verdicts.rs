//! Answers cases on standard input with this crate's authorizer: a line for each question.
//!
//! The rig `make compat-security` asks Apache Kafka's own StandardAuthorizer the same (lab/compat/security/verdicts.py,
//! which also describes the lines) and compares the answers.
//!
//! `--planted`: a PREFIXED DENY of three or more letters counts as LITERAL. The rig must notice.

use std::io::{BufRead, BufWriter, Write};

use barnabas_base::{Text, Uuid};
use barnabas_metadata::Image;
use barnabas_metadata::access::Acl;
use barnabas_security::explain::{Explanation, Question, decides, explain};
use barnabas_security::{
    Authorizer, Host, Operation, PatternType, Permission, ResourceType, SuperUsers, Verdict,
};

/// One set of ACLs. The authorizer is built at the first question.
#[derive(Default)]
struct Set {
    image: Image,
    super_users: SuperUsers,
    allow_everyone: bool,
    authorizer: Option<Authorizer>,
}

fn main() -> Result<(), String> {
    let is_planted = std::env::args().any(|word| word == "--planted");
    let mut answers = BufWriter::new(std::io::stdout().lock());
    let mut set = Set::default();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let words: Vec<String> = line.split('\t').map(unescaped).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = match words[..] {
            ["set", super_users, allow_everyone] => {
                let super_users = SuperUsers::parse(super_users).map_err(|error| error.to_string())?;
                set = Set { super_users, allow_everyone: allow_everyone == "true", ..Set::default() };
                continue;
            }
            ["acl", kind, name, pattern, principal, host, operation, permission] => {
                let code = |text: &str| text.parse::<i8>().map_err(|error| format!("{line}: {error}"));
                let acl = Acl {
                    resource_type: code(kind)?,
                    resource_name: Text::from(name),
                    pattern_type: code(pattern)?,
                    principal: Text::from(principal),
                    host: Text::from(host),
                    operation: code(operation)?,
                    permission: code(permission)?,
                };
                set.add(if is_planted { mistaken(acl) } else { acl });
                continue;
            }
            ["any", principal, host, operation, kind] => set.any(principal, host, operation, kind),
            [asked @ ("ask" | "why"), principal, host, operation, kind, name] => {
                set.ask(asked == "why", principal, host, operation, kind, name)
            }
            _ => None,
        };
        let answer = answer.ok_or_else(|| format!("{line}: not a case"))?;
        writeln!(answers, "{answer}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

impl Set {
    /// ACLs are numbered from 0: the number is the id.
    fn add(&mut self, acl: Acl) {
        let number = self.image.acls.len() as u64;
        let mut id = [0; 16];
        id[8..].copy_from_slice(&number.to_be_bytes());
        self.image.acls.insert(Uuid(id), acl);
        self.authorizer = None;
    }

    fn authorizer(&mut self) -> &Authorizer {
        let (image, super_users) = (&self.image, &self.super_users);
        self.authorizer
            .get_or_insert_with(|| Authorizer::new(image, super_users.clone(), self.allow_everyone))
    }

    fn any(&mut self, principal: &str, host: &str, operation: &str, kind: &str) -> Option<String> {
        let (operation, kind) =
            (number(operation, Operation::from_code)?, number(kind, ResourceType::from_code)?);
        let authorizer = self.authorizer();
        let caller = authorizer.caller(principal, &Host::parse(host));
        Some(allowed(authorizer.allows_any(&caller, operation, kind)).to_owned())
    }

    fn ask(
        &mut self,
        is_why: bool,
        principal: &str,
        host: &str,
        operation: &str,
        kind: &str,
        name: &str,
    ) -> Option<String> {
        let (operation, kind) =
            (number(operation, Operation::from_code)?, number(kind, ResourceType::from_code)?);
        let host = Host::parse(host);
        let authorizer = self.authorizer();
        let caller = authorizer.caller(principal, &host);
        let verdict = authorizer.decide(&caller, operation, kind, name);
        let answer = allowed(verdict.is_allowed());
        if !is_why {
            return Some(answer.to_owned());
        }
        let question =
            Question { principal, host: &host, operation, resource_type: kind, resource_name: name };
        let why = match verdict {
            Verdict::SuperUser => "super user".to_owned(),
            Verdict::Allowed | Verdict::Denied => self.deciding(&question, verdict),
            Verdict::NotAllowed | Verdict::AllowedWithoutAcls | Verdict::NotAllowedWithoutAcls => {
                "default".to_owned()
            }
        };
        Some(format!("{answer}\t{why}"))
    }

    /// The numbers of the ACLs that decide, the one that the explanation names before the others.
    fn deciding(&self, question: &Question<'_>, verdict: Verdict) -> String {
        let named = match explain(&self.image.acls, question, verdict) {
            Explanation::Allowed { id, .. } | Explanation::Denied { id, .. } => id,
            other => panic!("{verdict:?} explained by {other:?}"),
        };
        let wanted = Some(verdict == Verdict::Allowed);
        let all = self.image.acls.iter().filter(|(_, acl)| decides(acl, question) == wanted);
        let others = all.map(|(id, _)| *id).filter(|id| *id != named);
        let numbers: Vec<String> =
            std::iter::once(named).chain(others).map(|id| shown(id).to_string()).collect();
        numbers.join(" ")
    }
}

fn shown(id: Uuid) -> u64 {
    id.0[8..].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

fn allowed(is_allowed: bool) -> &'static str {
    if is_allowed { "ALLOWED" } else { "DENIED" }
}

fn number<T>(text: &str, from_code: fn(i8) -> Option<T>) -> Option<T> {
    from_code(text.parse().ok()?)
}

fn mistaken(acl: Acl) -> Acl {
    let is_hit = acl.permission == Permission::Deny.code()
        && acl.pattern_type == PatternType::Prefixed.code()
        && acl.resource_name.len() >= 3;
    if is_hit { Acl { pattern_type: PatternType::Literal.code(), ..acl } } else { acl }
}

/// `%XX` stands for a byte.
fn unescaped(word: &str) -> String {
    let mut parts = word.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).expect("two hexadecimal digits after %"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).expect("UTF-8")
}
