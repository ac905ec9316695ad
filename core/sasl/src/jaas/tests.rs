//! Kafka's published cases of JaasContextTest, and what our errors name.

use super::{
    ControlFlag, Entry, LoginModule, ModuleError, parse_config, parse_file, parse_one, section_of_listener,
};
use crate::Secret;

fn check(text: &str, class: &str, flag: ControlFlag, options: &[(&str, &str)]) {
    let file = format!("KafkaServer {{ {text} }};");
    for entry in [parse_one(text).expect(text), parse_file(&file).expect(text).remove(0).entries.remove(0)] {
        assert_eq!((entry.class.as_str(), entry.flag), (class, flag));
        let read: Vec<_> = entry.options().map(|(key, value)| (key, value.text().unwrap())).collect();
        assert_eq!(read, options, "{text}");
    }
}

#[test]
fn configs_of_kafkas_test_are_read() {
    use ControlFlag::{Optional, Required, Requisite, Sufficient};
    check("test.NoOptions required;", "test.NoOptions", Required, &[]);
    for (word, flag) in
        [("required", Required), ("REQUISITE", Requisite), ("Sufficient", Sufficient), ("optional", Optional)]
    {
        check(&format!("test.Flag {word} a=b;"), "test.Flag", flag, &[("a", "b")]);
    }
    check(
        "t required a=\"prop value\" b=\"x = 1, y = 2\";",
        "t",
        Required,
        &[("a", "prop value"), ("b", "x = 1, y = 2")],
    );
    check("t required \"prop name\"=propValue;", "t", Required, &[("prop name", "propValue")]);
    check("t required option1=\"3\";", "t", Required, &[("option1", "3")]);
    check("t required a=\"q\\\"q\\\\ \\101\\n\" a=last // end\n;", "t", Required, &[("a", "last")]);
    check("t /* a\n=b */ required a=\"q\\\"\\\\\\101\";", "t", Required, &[("a", "q\"\\A")]);
    check(
        "t required keyTab=\"/etc/x\" b=ü1.2-_$;",
        "t",
        Required,
        &[("keyTab", "/etc/x"), ("b", "ü1.2-_$")],
    );
}

#[test]
fn malformed_configs_are_errors_with_a_place() {
    for (text, place, what) in [
        ("  required option1=value1;", (1, 12), "control flag"),
        ("test.loginModule option1=value1;", (1, 18), "control flag"),
        ("loginModule required\n option1;", (2, 9), "Value not specified for key \"option1\""),
        ("t required option1=value1", (1, 26), "not terminated by semi-colon"),
        ("t required option1=3;", (1, 20), "needs quotes"),
        ("t required keyTab=/etc/x;", (1, 26), "needs quotes"),
        ("t { option1=3;", (1, 3), "control flag"),
        ("t", (1, 2), "control flag"),
        ("", (1, 1), "Login module not specified"),
        ("t required =x;", (1, 12), "name of an option"),
    ] {
        let error = parse_config(text).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!((error.line, error.column), place, "{text}: {error}");
        assert!(error.to_string().contains("Example: org.apache.kafka"), "{error}");
    }
}

#[test]
fn errors_do_not_show_values() {
    let error = parse_config("t required password=\"hunter2\" username").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn config_with_two_modules_is_refused_where_one_is_meant() {
    let two = "a required; b required x=y;";
    assert_eq!(parse_config(two).unwrap().len(), 2);
    assert!(parse_one(two).unwrap_err().what.contains("contains 2 login modules"));
}

#[test]
fn listener_has_its_own_section_or_the_common_one() {
    let file = "KafkaServer { a required; };\nplaintext.KafkaServer { b requisite; };";
    let sections = parse_file(file).unwrap();
    assert_eq!(section_of_listener(&sections, "PLAINTEXT").unwrap().entries[0].class, "b");
    assert_eq!(section_of_listener(&sections, "other").unwrap().entries[0].class, "a");
    assert_eq!(section_of_listener(&sections[1..], "other"), None);
}

#[test]
fn files_have_rules_of_their_own() {
    assert!(parse_file("A { t required; }").is_err());
    assert!(parse_file("A { t required; }; A { t required; };").unwrap_err().what.contains("second section"));
    assert!(parse_file("A { t required a='b'; };").is_err());
    assert!(parse_config("t required a='b';").is_ok());
    assert!(parse_file("A { t required a=\"${user.home}\"; };").is_err());
    let entry = &parse_file("A { t required a=\"${/}b\"; };").unwrap()[0].entries[0];
    assert_eq!(entry.option("a"), Some(&Secret::from("/b")));
}

fn module(text: &str) -> Result<LoginModule, ModuleError> {
    let entry: Entry = parse_one(text).expect(text);
    LoginModule::try_from(&entry)
}

#[test]
fn plain_module_names_its_users() {
    let class = "org.apache.kafka.common.security.plain.PlainLoginModule";
    let read =
        module(&format!("{class} required username=b password=\"s\" user_alice=\"p1\" user_bob=\"p2\";"));
    let Ok(LoginModule::Plain(plain)) = read else { panic!("{read:?}") };
    assert_eq!(plain.username.as_deref(), Some("b"));
    assert_eq!(plain.users, [("alice".into(), Secret::from("p1")), ("bob".into(), Secret::from("p2"))]);
    let missing = module(&format!("{class} required username=b;")).unwrap_err();
    assert!(matches!(missing, ModuleError::Missing { given: "username", missing: "password", .. }));
}

#[test]
fn other_modules_are_read() {
    let scram =
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=id password=x tokenauth=";
    assert!(matches!(module(&format!("{scram}true;")), Ok(LoginModule::Scram(login)) if login.token_auth));
    assert!(matches!(
        module(&format!("{scram}maybe;")),
        Err(ModuleError::NotBoolean { option: "tokenauth", .. })
    ));
    let oauth =
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required extension_a=b scope=s;";
    let Ok(LoginModule::OAuthBearer(login)) = module(oauth) else { panic!("{oauth}") };
    assert_eq!((login.extensions, login.scope.as_deref()), (vec![("a".into(), "b".into())], Some("s")));
    let krb5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true";
    assert!(
        matches!(module(&format!("{krb5} keyTab=\"/k\";")), Ok(LoginModule::Krb5(login)) if login.use_key_tab)
    );
    assert!(matches!(module(&format!("{krb5};")), Err(ModuleError::NoKeyTab { .. })));
}

#[test]
fn foreign_class_is_refused_with_an_example() {
    let error = module("com.example.LdapLoginModule required;").unwrap_err();
    assert!(error.to_string().contains("ScramLoginModule required username="), "{error}");
}
