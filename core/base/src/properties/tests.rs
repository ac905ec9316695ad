use super::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    super::pairs(text).expect("properties")
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn separators_comments_and_blanks() {
    let text = "# comment\n! another\n\n  a=1\nb : 2\nc 3\nd\ne=\nf == x\r\n\tg\t=\t4 \n";
    let expected = [
        pair("a", "1"),
        pair("b", "2"),
        pair("c", "3"),
        pair("d", ""),
        pair("e", ""),
        pair("f", "= x"),
        pair("g", "4 "),
    ];
    assert_eq!(pairs(text), expected);
}

#[test]
fn continued_lines_are_joined_without_their_indent() {
    assert_eq!(
        pairs("a=one,\\\n   two,\\\n\tthree\nb=x\\\\\nc=1"),
        [pair("a", "one,two,three"), pair("b", "x\\"), pair("c", "1")]
    );
    assert_eq!(pairs("a=1\\"), [pair("a", "1")]);
}

#[test]
fn escapes_stand_for_letters() {
    assert_eq!(pairs(r"path=c\:\\dir\=x"), [pair("path", r"c:\dir=x")]);
    assert_eq!(pairs(r"a\ b\=c=\tx\u00e9\q"), [pair("a b=c", "\tx\u{e9}q")]);
    assert_eq!(pairs(r"smile=\ud83d\ude00"), [pair("smile", "\u{1f600}")]);
    assert_eq!(parse("ok=1\nbad=\\u00g0"), Err(PropertiesError { line: 2 }));
}

#[test]
fn lines_are_counted() {
    let lines: Vec<_> =
        parse("#\na=1\\\n2\nb=3").expect("properties").iter().map(|property| property.line).collect();
    assert_eq!(lines, [2, 4]);
}

#[test]
fn an_override_is_one_pair() {
    let property = parse_override("log.dirs=/a=b").expect("a pair");
    assert_eq!((property.key.as_str(), property.value.as_str()), ("log.dirs", "/a=b"));
    assert_eq!(parse_override("novalue"), None);
    assert_eq!(parse_override("=x"), None);
}
