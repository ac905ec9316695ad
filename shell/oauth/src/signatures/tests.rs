use super::*;
use barnabas_issuer::SigningKey;
use barnabas_sasl::oauth::Jwks;
use serde_json::json;

fn public(key: &SigningKey) -> PublicKey {
    let set = json!({"keys": [key.jwk()]}).to_string();
    let keys = Jwks::parse(set.as_bytes()).expect("a set");
    let token = key.token(&json!({}));
    let jwt = barnabas_sasl::oauth::Jwt::parse(&token).expect("a token");
    let algorithm = Algorithm::from_name(key.algorithm).expect("known");
    keys.select(&jwt, algorithm).expect("the key").clone()
}

#[test]
fn signature_of_each_algorithm_is_right_for_its_own_message() {
    for algorithm in Algorithm::ALL {
        let key = SigningKey::generate("k", algorithm.name());
        let (public, mut signature) = (public(&key), key.sign(b"message"));
        assert!(AwsSignatures.is_right(algorithm, &public, b"message", &signature), "{algorithm:?}");
        assert!(!AwsSignatures.is_right(algorithm, &public, b"another", &signature), "{algorithm:?}");
        signature[7] ^= 1;
        assert!(!AwsSignatures.is_right(algorithm, &public, b"message", &signature), "{algorithm:?}");
        for other in Algorithm::ALL.into_iter().filter(|other| *other != algorithm) {
            let good = key.sign(b"message");
            assert!(!AwsSignatures.is_right(other, &public, b"message", &good), "{algorithm:?} as {other:?}");
        }
    }
}

#[test]
fn ecdsa_signature_of_another_length_is_refused() {
    let key = SigningKey::generate("k", "ES256");
    let (public, signature) = (public(&key), key.sign(b"message"));
    assert_eq!(signature.len(), 64);
    let is_right =
        |signature: &[u8]| AwsSignatures.is_right(Algorithm::Es256, &public, b"message", signature);
    assert!(is_right(&signature));
    for wrong in [&signature[..63], &[&signature[..], &[0]].concat(), &[0; 64], &[]] {
        assert!(!is_right(wrong), "{} bytes", wrong.len());
    }
    // The form of certificates: two integers of DER.
    let half = |bytes: &[u8]| [&[2, 33, 0], bytes].concat();
    let (r, s) = signature.split_at(32);
    let der = [&[0x30, 70][..], &half(r), &half(s)].concat();
    assert!(!is_right(&der));
}

#[test]
fn key_that_is_no_point_or_too_short_checks_nothing() {
    let key = SigningKey::generate("k", "ES256");
    let mut off = public(&key);
    if let Material::Ec { point, .. } = &mut off.material {
        point[40] ^= 1;
    }
    assert!(!AwsSignatures.is_right(Algorithm::Es256, &off, b"message", &key.sign(b"message")));
    let short = Material::Rsa { modulus: vec![0xff; 128], exponent: vec![1, 0, 1] };
    let short = PublicKey { id: None, algorithm: None, material: short };
    assert!(!AwsSignatures.is_right(Algorithm::Rs256, &short, b"message", &[1; 128]));
}
