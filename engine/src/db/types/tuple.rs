//! Tuples of two to six key parts, ordered by the first part, then the second, and so on.

use super::value::{Decoded, Key, KeyPart, Value};

macro_rules! tuple {
    ($($part:ident $value:ident),+; $last:ident $last_value:ident) => {
        impl<$($part: KeyPart,)+ $last: KeyPart> Value for ($($part,)+ $last) {
            type Ref<'a> = ($($part::Ref<'a>,)+ $last::Ref<'a>);
            type View<'a> = ($($part::Part<'a>,)+ $last::View<'a>);

            fn type_name() -> String {
                format!("({})", [$($part::type_name(),)+ $last::type_name()].join(","))
            }

            fn fixed_width() -> Option<usize> {
                Some($($part::fixed_width()? +)+ $last::fixed_width()?)
            }

            fn encode(($($value,)+ $last_value): &Self::Ref<'_>, out: &mut Vec<u8>) {
                $($part::encode_part($value, out);)+
                $last::encode($last_value, out);
            }

            fn decode<'a>(bytes: &'a [u8]) -> Decoded<Self::View<'a>> {
                let mut input = bytes;
                Ok(($($part::take_part(&mut input)?,)+ $last::decode(input)?))
            }
        }

        impl<$($part: KeyPart,)+ $last: KeyPart> Key for ($($part,)+ $last) {}
    };
}

tuple!(A a; B b);
tuple!(A a, B b; C c);
tuple!(A a, B b, C c; D d);
tuple!(A a, B b, C c, D d; E e);
tuple!(A a, B b, C c, D d, E e; F f);
