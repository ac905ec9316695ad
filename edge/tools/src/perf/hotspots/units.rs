//! Figures as text: shares, times, bytes and counts, each with its unit.

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Seconds, with a unit that leaves two to four digits.
pub fn duration(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        _ if seconds < 999.5e-6 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 0.9995 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

pub fn bytes(count: f64) -> String {
    match count {
        _ if count < 999.5 => format!("{count:.0} B"),
        _ if count < 999.5e3 => format!("{:.1} kB", count / 1e3),
        _ if count < 999.5e6 => format!("{:.1} MB", count / 1e6),
        _ => format!("{:.2} GB", count / 1e9),
    }
}

/// A count with commas between thousands; small ones with a digit behind the point.
pub fn grouped(count: f64) -> String {
    if count < 99.95 {
        return format!("{count:.1}");
    }
    let digits = format!("{count:.0}");
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
