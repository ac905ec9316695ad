//! The metrics of a push, inflated and read. Work for a thread that holds no lock: a push may have a megabyte.

use barnabas_base::ErrorCode;
use barnabas_wire::records::compression::inflate_within;
use barnabas_wire::records::{BatchError, Codec};
use bytes::Bytes;

use crate::series::{Limits, Points, gather};

/// Inflates to `bytes_max` at most.
///
/// # Errors
/// TELEMETRY_TOO_LARGE: more would come out. INVALID_RECORD: the codec refuses the bytes, or they are not OTLP; a
/// client pushes no more after that.
pub fn read(codec: Codec, metrics: Bytes, bytes_max: usize, limits: Limits) -> Result<Points, ErrorCode> {
    if metrics.is_empty() {
        return Ok(Points::default());
    }
    if codec == Codec::None && metrics.len() > bytes_max {
        return Err(ErrorCode::TelemetryTooLarge);
    }
    let inflated = inflate_within(codec, metrics, bytes_max).map_err(|error| match error {
        BatchError::TooLarge { .. } => ErrorCode::TelemetryTooLarge,
        _ => ErrorCode::InvalidRecord,
    })?;
    gather(&inflated, limits).map_err(|_| ErrorCode::InvalidRecord)
}

#[cfg(test)]
mod tests {
    use barnabas_wire::records::Compression;

    use super::*;
    use crate::series::tests::push_of;

    const LIMITS: Limits = Limits { series_max: 100, client_series_max: 100 };

    #[test]
    fn push_is_read_with_each_codec() {
        let plain = push_of(&["org.apache.kafka.producer.a"]);
        for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let mut packed = Vec::new();
            Compression::of(codec).deflate(&plain, &mut packed).expect("memory is there");
            let points = read(codec, Bytes::from(packed), plain.len(), LIMITS).expect("a push");
            assert_eq!(points.len(), 1, "{codec}");
        }
    }

    #[test]
    fn push_beyond_the_limit_or_not_otlp_is_refused() {
        let mut bomb = Vec::new();
        Compression::of(Codec::Zstd).deflate(&vec![0; 1 << 20], &mut bomb).expect("memory is there");
        let refused =
            |codec, bytes: &[u8]| read(codec, Bytes::copy_from_slice(bytes), 4096, LIMITS).map(|_| ());
        assert_eq!(refused(Codec::Zstd, &bomb), Err(ErrorCode::TelemetryTooLarge));
        assert_eq!(refused(Codec::None, &[0; 4097]), Err(ErrorCode::TelemetryTooLarge));
        assert_eq!(refused(Codec::Gzip, &bomb), Err(ErrorCode::InvalidRecord));
        assert_eq!(refused(Codec::None, &[0x0a, 0x7f]), Err(ErrorCode::InvalidRecord));
        assert_eq!(refused(Codec::Zstd, &[]), Ok(()));
    }
}
