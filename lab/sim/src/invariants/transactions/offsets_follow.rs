//! A group gets offsets of committed transactions only, and in the end the last of them.

use super::{Ledger, Violation};
use crate::batch::Value;
use crate::clients::transactional::TxnClient;

pub(super) fn check(ledger: &Ledger, value: Value) -> Result<(), Violation> {
    match ledger.fates.get(&value) {
        Some(true) => Ok(()),
        fate => Err(format!("offset {value} is told, and committed: {fate:?}")),
    }
}

pub(super) fn at_rest(ledger: &Ledger, writers: &[TxnClient]) -> Result<(), Violation> {
    for client in writers {
        let last = ledger.offsets.get(&client.id).copied();
        if client.offset != Some(last) {
            return Err(format!(
                "{} is told {:?}, and {last:?} was committed last",
                client.id, client.offset
            ));
        }
    }
    Ok(())
}
