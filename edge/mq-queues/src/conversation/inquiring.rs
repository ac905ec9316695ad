//! MQINQ: attributes of the queue manager and of queues. What is not known here is `SELECTOR_ERROR`.

use super::{Answer, Conversation};
use crate::conversation::MESSAGE_BYTES_MAX;
use crate::refusal::reason_of;
use barnabas_mq::{Reply, oo, reason};
use barnabas_queue_access::group;

/// Selectors from here on are of texts.
const TEXTS_FROM: u32 = 2001;
const NAME_BYTES: usize = 48;
/// `MQIA_COMMAND_LEVEL`: that of IBM MQ 8, which clients of JMS 2.0 want.
const COMMAND_LEVEL: u32 = 800;
const UNIX: u32 = 3;
const UTF_8: u32 = 1208;
/// Kafka has no such limit.
const DEPTH_MAX: u32 = 999_999_999;

struct Asked<'a> {
    depth: u32,
    open: (u32, u32),
    is_temporary: bool,
    name: &'a str,
}

impl Conversation {
    pub(super) async fn inquire(&mut self, handle: u32, selectors: Vec<u32>, sizes: (u32, u32)) -> Answer {
        match self.inquired(handle, &selectors, sizes).await {
            Ok((integers, characters)) => {
                Answer::with(reason::NONE, handle, Reply::Inquire { selectors, integers, characters })
            }
            Err(why) => Answer::with(why, handle, Reply::Bare),
        }
    }

    async fn inquired(
        &mut self,
        number: u32,
        selectors: &[u32],
        sizes: (u32, u32),
    ) -> Result<(Vec<u32>, Vec<u8>), u32> {
        const CURRENT_DEPTH: u32 = 3;
        const INTEGERS_MAX: usize = 256;
        const TEXT_BYTES_MAX: usize = 64 * 1024;
        let handle = self.handles.get(number).ok_or(reason::HOBJ_ERROR)?;
        if handle.options & oo::INQUIRE == 0 {
            return Err(reason::NOT_OPEN_FOR_INQUIRE);
        }
        let queue = handle.queue.as_ref().map(|queue| (queue.name.clone(), queue.address.clone()));
        let asked = match &queue {
            None => None,
            Some((name, address)) => {
                let depth = if selectors.contains(&CURRENT_DEPTH) {
                    let depth = group::depth(&mut self.cluster, address).await;
                    u32::try_from(depth.map_err(|error| reason_of(&error))?).unwrap_or(u32::MAX)
                } else {
                    0
                };
                let open = self.handles.open_counts(&address.topic);
                let is_temporary = barnabas_queue_access::is_temporary(&address.topic);
                Some(Asked { depth, open, is_temporary, name })
            }
        };
        let (mut integers, mut characters) = (Vec::new(), Vec::new());
        for selector in selectors {
            if *selector < TEXTS_FROM {
                let value = match &asked {
                    Some(asked) => of_queue(*selector, asked),
                    None => of_manager(*selector),
                };
                integers.push(value.ok_or(reason::SELECTOR_ERROR)?);
            } else {
                let (text, bytes) = self.text(*selector, asked.as_ref()).ok_or(reason::SELECTOR_ERROR)?;
                let start = characters.len();
                characters.extend_from_slice(text.as_bytes());
                characters.resize(start + bytes, b' ');
            }
        }
        // As much as there is room for at the client, whatever it asks.
        integers.resize((sizes.0 as usize).min(INTEGERS_MAX), 0);
        characters.resize((sizes.1 as usize).min(TEXT_BYTES_MAX), b' ');
        Ok((integers, characters))
    }

    /// The text, and its field's bytes.
    fn text(&self, selector: u32, queue: Option<&Asked<'_>>) -> Option<(String, usize)> {
        let name = |text: &str| Some((text.to_owned(), NAME_BYTES));
        match (selector, queue) {
            (2006 | 2003, None) => name(""),
            (2014, None) | (2013, Some(_)) => Some((String::new(), 64)),
            (2015, None) => name(&self.task.shared.queue_manager),
            (2032, None) => name(&self.task.shared.identifier),
            (2016, Some(asked)) => name(asked.name),
            (2004, Some(_)) => Some((String::new(), 12)),
            (2005, Some(_)) => Some((String::new(), 8)),
            // Base queue, initiation, process, backout and transmission queues, cluster names: none.
            (2002 | 2008 | 2012 | 2019 | 2024 | 2029 | 2030, Some(_)) => name(""),
            _ => None,
        }
    }
}

/// By `MQIA_*`.
fn of_manager(selector: u32) -> Option<u32> {
    Some(match selector {
        2 => UTF_8,
        31 => COMMAND_LEVEL,
        32 => UNIX,
        11 => 256,
        13 => MESSAGE_BYTES_MAX as u32,
        14 => 9,
        // Units of work are there; distribution lists, advanced capabilities and publish/subscribe are not.
        30 => 1,
        34 | 273 | 187 => 0,
        33 => 10_000,
        _ => return None,
    })
}

fn of_queue(selector: u32, asked: &Asked<'_>) -> Option<u32> {
    Some(match selector {
        3 => asked.depth,
        17 => asked.open.0,
        18 => asked.open.1,
        // A local queue, predefined or temporary.
        20 => 1,
        7 => {
            if asked.is_temporary {
                3
            } else {
                1
            }
        }
        13 => MESSAGE_BYTES_MAX as u32,
        15 => DEPTH_MAX,
        // Persistent, first in first out, shared.
        5 | 16 | 23 => 1,
        4 => 2,
        // Default priority and bind, puts and gets allowed, no trigger, no backout threshold, no distribution lists.
        6 | 9 | 10 | 12 | 22 | 24 | 34 | 61 | 78 | 190 => 0,
        // The backout count is kept.
        8 | 184 => 1,
        188 => 0,
        _ => return None,
    })
}
