//! The vectors of RFC 3961, RFC 3962 and RFC 8009.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect()
}

fn key(enctype: Enctype, hex: &str) -> Key {
    Key::new(enctype, &bytes(hex)).expect("a key")
}

const SHA256_KEY: &str = "3705D96080C17728A0E800EAB6E0D23C";
const SHA384_KEY: &str = "6D404D37FAF79F9DF0D33568D320669800EB4836472EA8A026D16B7182460C52";

#[test]
fn folds_are_those_of_rfc_3961() {
    assert_eq!(fold(b"kerberos").to_vec(), bytes("6b65726265726f737b9b5b2b93132b93"));
}

#[test]
fn stolen_ciphertext_is_that_of_rfc_3962() {
    let cipher = Cipher::new(b"chicken teriyaki").expect("a key");
    let text = b"I would like the General Gau's Chicken, please, and wonton soup.";
    for (length, end) in [
        (17, "c6353568f2bf8cb4d8a580362da7ff7f97"),
        (31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5"),
        (32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584"),
        (
            47,
            "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5",
        ),
        (
            64,
            "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a84807efe836ee89a526730dbc2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8",
        ),
    ] {
        let mut encrypted = text[..length].to_vec();
        cipher.encrypt(&mut encrypted);
        assert_eq!(encrypted, bytes(end), "{length}");
        cipher.decrypt(&mut encrypted);
        assert_eq!(encrypted, &text[..length]);
    }
}

#[test]
fn derived_keys_are_those_of_rfc_8009() {
    let (short, long) = (key(Enctype::Aes128Sha256, SHA256_KEY), key(Enctype::Aes256Sha384, SHA384_KEY));
    for (key, purpose, derived) in [
        (&short, Purpose::Checksum, "B31A018A48F54776F403E9A396325DC3"),
        (&short, Purpose::Encryption, "9B197DD1E8C5609D6E67C3E37C62C72E"),
        (&short, Purpose::Integrity, "9FDA0E56AB2D85E1569A688696C26A6C"),
        (&long, Purpose::Checksum, "EF5718BE86CC84963D8BBB5031E9F5C4BA41F28FAF69E73D"),
        (&long, Purpose::Encryption, "56AB22BEE63D82D7BC5227F6773F8EA7A5EB1C825160C38312980C442E5C7E49"),
        (&long, Purpose::Integrity, "69B16514E3CD8E56B82010D5C73012B622C4D00FFC23ED1F"),
    ] {
        assert_eq!(*key.derive(Usage::Ticket, purpose), bytes(derived), "{purpose:?}");
    }
}

#[test]
fn ciphertexts_are_those_of_rfc_8009() {
    let (short, long) = (key(Enctype::Aes128Sha256, SHA256_KEY), key(Enctype::Aes256Sha384, SHA384_KEY));
    let plain: Vec<u8> = (0..21).collect();
    for (key, length, confounder, ciphertext) in [
        (
            &short,
            6,
            "7BCA285E2FD4130FB55B1A5C83BC5B24",
            "84D7F30754ED987BAB0BF3506BEB09CFB55402CEF7E6877CE99E247E52D16ED4421DFDF8976C",
        ),
        (
            &short,
            16,
            "56AB21713FF62C0A1457200F6FA9948F",
            "3517D640F50DDC8AD3628722B3569D2AE07493FA8263254080EA65C1008E8FC295FB4852E7D83E1E7C48C37EEBE6B0D3",
        ),
        (
            &short,
            21,
            "A7A4E29A4728CE10664FB64E49AD3FAC",
            "720F73B18D9859CD6CCB4346115CD336C70F58EDC0C4437C5573544C31C813BCE1E6D072C186B39A413C2F92CA9B8334A287FFCBFC",
        ),
        (
            &long,
            0,
            "F764E9FA15C276478B2C7D0C4E5F58E4",
            "41F53FA5BFE7026D91FAF9BE959195A058707273A96A40F0A01960621AC612748B9BBFBE7EB4CE3C",
        ),
        (
            &long,
            6,
            "B80D3251C1F6471494256FFE712D0B9A",
            "4ED7B37C2BCAC8F74F23C1CF07E62BC7B75FB3F637B9F559C7F664F69EAB7B6092237526EA0D1F61CB20D69D10F2",
        ),
        (
            &long,
            16,
            "53BF8A0D105265D4E276428624CE5E63",
            "BC47FFEC7998EB91E8115CF8D19DAC4BBBE2E163E87DD37F49BECA92027764F68CF51F14D798C2273F35DF574D1F932E40C4FF255B36A266",
        ),
    ] {
        let confounder: [u8; 16] = bytes(confounder).try_into().expect("a block");
        let encrypted = key.encrypt(Usage::Ticket, &confounder, &plain[..length]).expect("a cipher");
        assert_eq!(encrypted, bytes(ciphertext), "{length}");
        assert_eq!(key.decrypt(Usage::Ticket, &encrypted).expect("whole").as_slice(), &plain[..length]);
        assert_eq!(key.decrypt(Usage::ApReply, &encrypted), None, "another usage");
    }
}

#[test]
fn changed_ciphertexts_have_no_plaintext() {
    for enctype in [Enctype::Aes128Sha1, Enctype::Aes256Sha1, Enctype::Aes128Sha256, Enctype::Aes256Sha384] {
        let key = Key::new(enctype, &vec![7; enctype.key_bytes()]).expect("a key");
        for length in [0, 1, 15, 16, 17, 40] {
            let plain = vec![3; length];
            let encrypted = key.encrypt(Usage::Ticket, &[9; 16], &plain).expect("a cipher");
            assert_eq!(key.decrypt(Usage::Ticket, &encrypted).expect("whole").as_slice(), plain);
            for at in 0..encrypted.len() {
                let mut changed = encrypted.clone();
                changed[at] ^= 1;
                assert_eq!(key.decrypt(Usage::Ticket, &changed), None, "{enctype} {length} {at}");
            }
            assert_eq!(key.decrypt(Usage::Ticket, &encrypted[1..]), None);
        }
        assert_eq!(key.decrypt(Usage::Ticket, &[0; 10]), None);
        assert!(Key::new(enctype, &[1]).is_none());
    }
}
