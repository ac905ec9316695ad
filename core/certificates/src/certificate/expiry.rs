//! When certificates expire, and when that is to be said: 30, 7 and 1 days before, and once they have.

const DAY_S: i64 = 24 * 60 * 60;
/// In days, the last one first.
const STEPS: [i64; 4] = [0, 1, 7, 30];

/// One certificate that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiring {
    /// `keystore`, `truststore`, or `crl` for a revocation list: its subject is the issuer, its end the next update.
    pub store: &'static str,
    pub subject: String,
    /// Seconds since 1970.
    pub not_after_s: i64,
}

/// What has been said of a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expiry {
    said: Option<i64>,
}

impl Expiry {
    /// Days left, rounded up, when it is time to say so: once for each step. 0 and less: it has expired.
    pub fn due(&mut self, not_after_s: i64, now_s: i64) -> Option<i64> {
        let left_s = not_after_s - now_s;
        let step = STEPS.into_iter().find(|days| left_s <= days * DAY_S)?;
        if self.said.is_some_and(|said| said <= step) {
            return None;
        }
        self.said = Some(step);
        Some((left_s + DAY_S - 1).div_euclid(DAY_S))
    }

    /// Whether it is time to say that it has ended: once. Revocation lists live for days, and are replaced in time.
    pub fn is_over(&mut self, not_after_s: i64, now_s: i64) -> bool {
        not_after_s <= now_s && self.due(not_after_s, now_s).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_said_once() {
        let mut expiry = Expiry::default();
        let end = 100 * DAY_S;
        let said: Vec<_> =
            (0..110).filter_map(|day| expiry.due(end, day * DAY_S).map(|left| (day, left))).collect();
        assert_eq!(said, [(70, 30), (93, 7), (99, 1), (100, 0)]);
    }

    #[test]
    fn expired_certificate_is_said_at_the_start() {
        assert_eq!(Expiry::default().due(DAY_S, 3 * DAY_S), Some(-2));
        assert_eq!(Expiry::default().due(DAY_S * 31, 0), None);
    }

    #[test]
    fn end_of_a_list_is_named_once_it_is_there() {
        let mut expiry = Expiry::default();
        let said: Vec<_> = (0..4).filter(|day| expiry.is_over(2 * DAY_S, day * DAY_S)).collect();
        assert_eq!(said, [2]);
    }
}
