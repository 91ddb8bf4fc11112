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

use core::fmt::{self, Display};
use core::marker::PhantomData;
use core::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The methods of a visitor that expects a text: they refuse a number and say what to write instead.
macro_rules! refuse_numbers {
    ($type:ident) => {
        refuse_numbers!($type: visit_i64(i64), visit_u64(u64), visit_f64(f64));
    };
    ($type:ident: $($visit:ident($number:ty)),*) => {
        $(fn $visit<E: de::Error>(self, number: $number) -> Result<Self::Value, E> {
            Err(unquoted::<$type, E>(&number))
        })*
    };
}

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
        struct Quoted<T>(PhantomData<T>);

        impl<T: FromStr<Err: Display>> Visitor<'_> for Quoted<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(Text).map_err(E::custom)
            }

            refuse_numbers!(T);
        }

        deserializer.deserialize_str(Quoted(PhantomData))
    }
}

/// Refuses a number without quotes, which has no unit. The error of parsing it as a text says what to write.
fn unquoted<T: FromStr<Err: Display>, E: de::Error>(number: &impl Display) -> E {
    match number.to_string().parse::<T>() {
        Ok(_) => E::custom(format!("write {number} in quotes: \"{number}\"")),
        Err(problem) => E::custom(problem),
    }
}

/// A text in the simple case and a table in the elaborate one: `rate = "3 Mbit/s"` or `rate = { trace = "walk.up" }`.
///
/// Unlike an untagged enum it reports the reason and the position of a mistake within the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TextOr<T, U> {
    /// A text.
    Text(T),
    /// A table.
    Table(U),
}

impl<'de, T: FromStr<Err: Display>, U: Deserialize<'de>> Deserialize<'de> for TextOr<T, U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice<T, U>(PhantomData<(T, U)>);

        impl<'de, T: FromStr<Err: Display>, U: Deserialize<'de>> Visitor<'de> for Choice<T, U> {
            type Value = TextOr<T, U>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a table")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(TextOr::Text).map_err(E::custom)
            }

            refuse_numbers!(T);

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                U::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Table)
            }
        }

        deserializer.deserialize_any(Choice(PhantomData))
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
            /// The errors of the serializer.
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
    use serde::Deserialize as _;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, I64Deserializer, StrDeserializer};

    use super::TextOr;
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

    #[test]
    fn a_number_without_quotes_is_told_what_to_write() {
        let number = |value: i64| -> I64Deserializer<Error> { value.into_deserializer() };
        let error = super::duration::deserialize(number(100)).unwrap_err().to_string();
        assert!(error.starts_with("\"100\" is not a duration") && error.contains("20 ms"), "{error}");
        let error = TextOr::<Duration, ()>::deserialize(number(5)).unwrap_err().to_string();
        assert!(error.starts_with("\"5\" is not a duration"), "{error}");
    }
}
