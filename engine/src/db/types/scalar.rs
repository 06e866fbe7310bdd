//! Types of a fixed width: integers, floats, `bool`, `()` and byte arrays.

use super::value::{Decoded, Key, KeyPart, TUPLE_ENDS, Value, WRONG_LENGTH};
use crate::base::bytes::take;

/// `bytes` as an array, if the length is right.
fn exact<const N: usize>(bytes: &[u8]) -> Decoded<&[u8; N]> {
    bytes.try_into().map_err(|_| WRONG_LENGTH)
}

/// A type with the same encoding inside a tuple, because its width shows where it ends.
macro_rules! fixed_part {
    ([$($generics:tt)*] $ty:ty) => {
        impl<$($generics)*> Key for $ty {}

        impl<$($generics)*> KeyPart for $ty {
            type Part<'a> = <$ty as Value>::View<'a>;

            fn encode_part(value: &Self::Ref<'_>, out: &mut Vec<u8>) {
                Self::encode(value, out);
            }

            fn take_part<'a>(input: &mut &'a [u8]) -> Decoded<Self::Part<'a>> {
                let width = Self::fixed_width().unwrap_or_default();
                Self::decode(take(input, width).ok_or(TUPLE_ENDS)?)
            }
        }
    };
}

/// Numbers. The encoding is the big-endian form of `$bits`, a one-to-one function of the number.
macro_rules! number {
    ($ty:ident as $bits:ty, |$value:ident| $to:expr, |$coded:ident| $from:expr) => {
        impl Value for $ty {
            type Ref<'a> = $ty;
            type View<'a> = $ty;

            fn type_name() -> String {
                stringify!($ty).to_owned()
            }

            fn fixed_width() -> Option<usize> {
                Some(size_of::<$ty>())
            }

            fn encode(value: &$ty, out: &mut Vec<u8>) {
                let $value = *value;
                let bits: $bits = $to;
                out.extend_from_slice(&bits.to_be_bytes());
            }

            fn decode(bytes: &[u8]) -> Decoded<$ty> {
                let $coded = <$bits>::from_be_bytes(*exact(bytes)?);
                Ok($from)
            }
        }
    };
}

macro_rules! unsigned {
    ($($ty:ident)*) => {$(
        number!($ty as $ty, |value| value, |bits| bits);
        fixed_part!([] $ty);
    )*};
}

/// Signed integers with the sign bit flipped, so that the negative ones come first.
macro_rules! signed {
    ($($ty:ident $bits:ident)*) => {$(
        number!($ty as $bits, |value| value.cast_unsigned() ^ (1 << ($bits::BITS - 1)),
            |bits| (bits ^ (1 << ($bits::BITS - 1))).cast_signed());
        fixed_part!([] $ty);
    )*};
}

unsigned!(u8 u16 u32 u64 u128);
signed!(i8 u8 i16 u16 i32 u32 i64 u64 i128 u128);
number!(f32 as u32, |value| value.to_bits(), |bits| f32::from_bits(bits));
number!(f64 as u64, |value| value.to_bits(), |bits| f64::from_bits(bits));

impl Value for bool {
    type Ref<'a> = bool;
    type View<'a> = bool;

    fn type_name() -> String {
        "bool".to_owned()
    }

    fn fixed_width() -> Option<usize> {
        Some(1)
    }

    fn encode(value: &bool, out: &mut Vec<u8>) {
        out.push(u8::from(*value));
    }

    fn decode(bytes: &[u8]) -> Decoded<bool> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err("a bool is neither the byte 0 nor the byte 1"),
        }
    }
}
fixed_part!([] bool);

impl Value for () {
    type Ref<'a> = ();
    type View<'a> = ();

    fn type_name() -> String {
        "()".to_owned()
    }

    fn fixed_width() -> Option<usize> {
        Some(0)
    }

    fn encode(_: &(), _: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Decoded<()> {
        exact::<0>(bytes).map(|_| ())
    }
}
fixed_part!([]());

impl<const N: usize> Value for [u8; N] {
    type Ref<'a> = &'a [u8; N];
    type View<'a> = &'a [u8; N];

    fn type_name() -> String {
        format!("[u8;{N}]")
    }

    fn fixed_width() -> Option<usize> {
        Some(N)
    }

    fn encode(value: &&[u8; N], out: &mut Vec<u8>) {
        out.extend_from_slice(*value);
    }

    fn decode(bytes: &[u8]) -> Decoded<&[u8; N]> {
        exact(bytes)
    }
}
fixed_part!([const N: usize] [u8; N]);
