//! Mistakes that a crate's own tests plant to see that they would be noticed. Outside of those tests there are none,
//! and asking for one costs nothing.

/// Makes `is(mistake)`, which production code asks, and `plant(Option<mistake>)`, which tests of the same crate say,
/// one at a time and for their own thread.
#[macro_export]
macro_rules! planted {
    ($Mistake:ty) => {
        #[cfg(test)]
        thread_local! {
            static PLANTED: std::cell::Cell<Option<$Mistake>> = const { std::cell::Cell::new(None) };
        }

        #[cfg(test)]
        pub(crate) fn plant(mistake: Option<$Mistake>) {
            PLANTED.set(mistake);
        }

        #[cfg(test)]
        pub(crate) fn is(mistake: $Mistake) -> bool {
            PLANTED.get() == Some(mistake)
        }

        #[cfg(not(test))]
        pub(crate) const fn is(_mistake: $Mistake) -> bool {
            false
        }
    };
}
