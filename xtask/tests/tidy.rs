//! The house rules are part of the ordinary tests.

#[test]
fn the_house_is_tidy() {
    if let Err(findings) = xtask::tidy::main(false) {
        panic!("{findings}");
    }
}
