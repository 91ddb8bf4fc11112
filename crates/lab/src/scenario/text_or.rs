//! Fields that are a text in the plain case and a table in the elaborate one.

use core::fmt::{self, Display};
use core::marker::PhantomData;
use core::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `rate = "3 Mbit/s"`, or `rate = { mean = "3 Mbit/s", ... }`.
///
/// Unlike an untagged enum it keeps the reason and the place of a mistake within the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TextOr<T, U> {
    /// A text.
    Text(T),
    /// A table.
    Table(U),
}

impl<T: Display, U: Serialize> Serialize for TextOr<T, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(value) => serializer.collect_str(value),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

impl<'de, T: FromStr<Err: Display>, U: Deserialize<'de>> Deserialize<'de> for TextOr<T, U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

struct TextOrVisitor<T, U>(PhantomData<(T, U)>);

impl<'de, T: FromStr<Err: Display>, U: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T, U> {
    type Value = TextOr<T, U>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a table")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(TextOr::Text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        U::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Table)
    }
}
