//! Properties of every type: encodings have the order of the values, decode to the same value, and no bytes make a
//! decoder panic.

use super::{DynType, Key, Value};
use crate::base::Error;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;

fn encoded<V: Value>(value: V::Ref<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    V::encode(&value, &mut out);
    if let Some(width) = V::fixed_width() {
        assert_eq!(out.len(), width, "{}", V::type_name());
    }
    out
}

fn order<K: Key>(a: K::Ref<'_>, b: K::Ref<'_>) -> Ordering {
    encoded::<K>(a).cmp(&encoded::<K>(b))
}

/// Asserts that the encoding of `$given` decodes to `$expected`.
macro_rules! round_trip {
    ($ty:ty: $given:expr => $expected:expr) => {
        let bytes = encoded::<$ty>($given);
        prop_assert_eq!(<$ty>::decode(&bytes).unwrap(), $expected);
    };
}

/// Short strings of few different bytes, so that prefixes and zeros are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![4 => 0u8..3, 1 => Just(0xFF), 1 => any::<u8>()], 0..6)
}

fn text() -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('\0'), Just('a'), Just(','), Just('\\'), any::<char>()], 0..6)
        .prop_map(|chars| chars.into_iter().collect())
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        proptest! {
            #[test]
            fn $ty(a: $ty, b: $ty, small in $ty::MIN..=$ty::MAX >> 1) {
                for (a, b) in [(a, b), (a, small), (a, $ty::MIN), (a, $ty::MAX), (a, 0), (a, a.wrapping_add(1))] {
                    prop_assert_eq!(order::<$ty>(a, b), a.cmp(&b));
                    prop_assert_eq!(order::<($ty, &str)>((a, ""), (b, "x")), (a, "").cmp(&(b, "x")));
                }
                round_trip!($ty: a => a);
            }
        }
    )*};
}

mod order_and_round_trip_of {
    use super::*;

    integers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

    proptest! {
        #[test]
        fn bytes_and_text(a in bytes(), b in bytes(), s in text(), t in text()) {
            prop_assert_eq!(order::<&[u8]>(&a, &b), a.cmp(&b));
            prop_assert_eq!(order::<&str>(&s, &t), s.cmp(&t));
            round_trip!(&[u8]: &a => a.as_slice());
            round_trip!(Vec<u8>: &a => a);
            round_trip!(&str: &s => s.as_str());
            round_trip!(String: &s => s);
        }

        #[test]
        fn arrays_bools_and_unit(a: [u8; 5], b: [u8; 5], x: bool, y: bool) {
            prop_assert_eq!(order::<[u8; 5]>(&a, &b), a.cmp(&b));
            prop_assert_eq!(order::<bool>(x, y), x.cmp(&y));
            round_trip!([u8; 5]: &a => &a);
            round_trip!(bool: x => x);
            round_trip!((): () => ());
        }

        #[test]
        fn pairs(a in (bytes(), -3i16..3), b in (bytes(), -3i16..3)) {
            type Pair<'n> = (&'n [u8], i16);
            prop_assert_eq!(order::<Pair>((&a.0, a.1), (&b.0, b.1)), a.cmp(&b));
            prop_assert_eq!(order::<(i16, &[u8])>((a.1, &a.0), (b.1, &b.0)), (a.1, &a.0).cmp(&(b.1, &b.0)));
            round_trip!(Pair: (&a.0, a.1) => (a.0.as_slice().into(), a.1));
        }

        #[test]
        fn triples_of_strings(a in (text(), bytes(), text()), b in (text(), bytes(), text())) {
            type Triple<'n> = (&'n str, Vec<u8>, String);
            prop_assert_eq!(order::<Triple>((&a.0, &a.1, &a.2), (&b.0, &b.1, &b.2)), a.cmp(&b));
            let bytes = encoded::<Triple>((&a.0, &a.1, &a.2));
            prop_assert_eq!(<Triple>::decode(&bytes).unwrap(), (a.0.as_str().into(), a.1, a.2));
        }

        #[test]
        fn six_parts(
            a in (any::<bool>(), text(), -2i64..2, any::<[u8; 2]>(), text(), 0u8..3),
            b in (any::<bool>(), text(), -2i64..2, any::<[u8; 2]>(), text(), 0u8..3),
        ) {
            type Six<'n> = (bool, &'n str, i64, [u8; 2], &'n str, u8);
            let [left, right] = [&a, &b].map(|v| encoded::<Six>((v.0, &v.1, v.2, &v.3, &v.4, v.5)));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            let back = <Six>::decode(&left).unwrap();
            prop_assert_eq!((back.0, back.1.into_owned(), back.2, *back.3, back.4.into_owned(), back.5), a);
        }

        #[test]
        fn floats_to_the_bit(a: f32, bits: u64) {
            prop_assert_eq!(f32::decode(&encoded::<f32>(a)).unwrap().to_bits(), a.to_bits());
            prop_assert_eq!(f64::decode(&encoded::<f64>(f64::from_bits(bits))).unwrap().to_bits(), bits);
        }

        #[test]
        fn options(number: Option<u32>, string in proptest::option::of(text())) {
            round_trip!(Option<u32>: number => number);
            let bytes = encoded::<Option<&str>>(string.as_deref());
            prop_assert_eq!(<Option<&str>>::decode(&bytes).unwrap(), string.as_deref());
        }
    }
}

/// `V`, the check and the text form of the `DynType` with its name must agree on whether `bytes` are valid, and the
/// text form must encode to the same bytes.
fn hostile<V: Value>(bytes: &[u8]) -> Result<(), TestCaseError> {
    let named: DynType = V::type_name().parse().unwrap();
    prop_assert_eq!(named.fixed_width(), V::fixed_width());
    let mut text = Vec::new();
    let read = named.decode_text(bytes, &mut text);
    prop_assert_eq!(read.is_ok(), V::decode(bytes).is_ok(), "{} {:?}", named, bytes);
    prop_assert_eq!(named.check(bytes).is_ok(), read.is_ok(), "{} {:?}", named, bytes);
    match read {
        Ok(()) if text == b"NaN" => {}
        Ok(()) => prop_assert_eq!(named.encode_text(&text).unwrap(), bytes, "{}", named),
        Err(error) => {
            let named_type = matches!(error, Error::Encoding { .. });
            prop_assert!(named_type, "{error:?}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn static_and_dynamic_types_decode_any_bytes_alike(bytes in vec(prop_oneof![0u8..3, any::<u8>()], 0..20)) {
        hostile::<&[u8]>(&bytes)?;
        hostile::<String>(&bytes)?;
        hostile::<()>(&bytes)?;
        hostile::<bool>(&bytes)?;
        hostile::<[u8; 3]>(&bytes)?;
        hostile::<u8>(&bytes)?;
        hostile::<i16>(&bytes)?;
        hostile::<u128>(&bytes)?;
        hostile::<f32>(&bytes)?;
        hostile::<(u8, i16)>(&bytes)?;
        hostile::<(&str, &[u8])>(&bytes)?;
        hostile::<(Vec<u8>, u16, String)>(&bytes)?;
        hostile::<(bool, (), [u8; 2], &[u8], u8, i8)>(&bytes)?;
        hostile::<Option<u16>>(&bytes)?;
        hostile::<Option<Option<(u8, &str)>>>(&bytes)?;
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in vec(prop_oneof![Just(b','), Just(b'\\'), 0x30u8..0x3A, any::<u8>()], 0..12)) {
        for name in ["bytes", "str", "()", "bool", "u8", "i64", "f64", "[u8;2]", "(u8,i8)", "(bytes,str)", "option<u8>"] {
            let named: DynType = name.parse().unwrap();
            match named.encode_text(&text) {
                Ok(bytes) => named.decode_text(&bytes, &mut Vec::new()).unwrap(),
                Err(error) => {
 let named_text = matches!(error, Error::Text { .. });
 prop_assert!(named_text, "{error:?}");
 },
            }
        }
    }
}

#[test]
fn prefixes_of_tuples_are_whole_parts_and_the_beginning_of_a_string() {
    let named: DynType = "(str,i16,str)".parse().unwrap();
    let oak = encoded::<(&str, i16, &str)>(("oak", 7, "red"));
    let oaks = encoded::<(&str, i16, &str)>(("oaks", 7, "red"));
    for (prefix, of_oak, of_oaks) in [
        ("", true, true),
        ("oa", true, true),
        ("oak", true, true),
        ("oak,", true, false),
        ("oak,7", true, false),
        ("oak,8", false, false),
        ("oaks,7,r", false, true),
        ("oak,7,red", true, false),
        ("oak,7,reds", false, false),
    ] {
        let bytes = named.encode_prefix(prefix.as_bytes()).unwrap();
        assert_eq!((oak.starts_with(&bytes), oaks.starts_with(&bytes)), (of_oak, of_oaks), "{prefix}");
    }
    for (name, prefix) in [("u8", "1"), ("(str,u8)", "a,x"), ("(str,u8)", "a,1,2"), ("[u8;2]", "abc")] {
        let named: DynType = name.parse().unwrap();
        let message = named.encode_prefix(prefix.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(&format!("\"{prefix}\"")), "{message}");
    }
}

#[test]
fn errors_of_text_name_the_text_and_the_expected_form() {
    let message = |name: &str, text: &[u8]| name.parse::<DynType>().unwrap().encode_text(text).unwrap_err().to_string();
    assert_eq!(message("u8", b"256"), "\"256\" is not a value of type u8: it must be a whole number from 0 to 255");
    assert_eq!(message("str", b"a\xFF\n"), "\"a\\xff\\n\" is not a value of type str: it must be valid UTF-8");
    assert_eq!(
        message("(str,u8)", b"oak,many"),
        "\"oak,many\" is not a value of type (str,u8): in part 2, \"many\", it must be a whole number from 0 to 255"
    );
    assert!(message("(str,u8)", b"oak").contains("it must have 2 parts separated by commas, not 1"));
    assert!(message("(str,u8)", br"a\b,1").contains("backslash"));
    assert!(message("u8", &[b'9'; 10_000]).len() < 200);
}
