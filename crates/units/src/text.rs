//! Serde for quantities written as text, for scenario and topology files.
//!
//! ```
//! # use units::{Duration, Rate};
//! #[derive(serde::Deserialize, serde::Serialize)]
//! struct Link {
//!     #[serde(with = "units::text::rate")]
//!     rate: Rate,
//!     delay: Option<units::text::Text<Duration>>,
//! }
//! ```

use core::fmt::Display;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value written as text: for optional fields and lists, where `#[serde(with = ...)]` does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Text<T>(pub T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

macro_rules! text_module {
    ($name:ident, $type:ty, $example:literal) => {
        #[doc = concat!("For `#[serde(with = ...)]`: `\"", $example, "\"`.")]
        pub mod $name {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            use super::Text;

            /// Reads the text.
            ///
            /// # Errors
            /// If it is not a number with a known unit.
            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                Text::deserialize(deserializer).map(|Text(value)| value)
            }

            /// Writes the text.
            ///
            /// # Errors
            /// Those of the serializer.
            pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                Text(*value).serialize(serializer)
            }
        }
    };
}

text_module!(rate, crate::Rate, "10 Mbit/s");
text_module!(duration, crate::Duration, "20 ms");
text_module!(bytes, crate::ByteCount, "64 kB");
text_module!(probability, crate::Probability, "1 %");

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use crate::{Duration, Rate};

    fn text(value: &str) -> StrDeserializer<'_, Error> {
        value.into_deserializer()
    }

    #[test]
    fn fields_read_text() {
        assert_eq!(super::rate::deserialize(text("3 Mbit/s")), Ok(Rate::from_mbps(3)));
        assert_eq!(super::duration::deserialize(text("100 ms")), Ok(Duration::from_millis(100)));
        let error = super::duration::deserialize(text("100")).unwrap_err().to_string();
        assert!(error.contains("20 ms"), "{error}");
    }
}
