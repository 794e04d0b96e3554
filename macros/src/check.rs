//! Checks of parameters, such as `#[within(1, 64)] count: u32`.
//!
//! Parameters of some types are checked without being asked for, because PyO3's sentences don't name the parameter: texts, bytes,
//! addresses, bools, numbers and objects of a class.

use proc_macro2::{Span, TokenStream as Tokens};
use quote::{ToTokens, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::visit_mut::{VisitMut, visit_type_reference_mut};
use syn::{
    Attribute, Expr, FnArg, Lifetime, Meta, Pat, PatType, Path, Signature, Token, Type, TypeReference,
    parse_quote,
};

const CHECKS: [&str; 16] = [
    "within", "whole", "count", "seconds", "instant", "number", "truth", "span", "either", "callable",
    "classes", "declared", "length", "one_way", "latency", "copied",
];

/// The checks of types, by how a type begins.
const OF_TYPES: [(&str, &str); 9] = [
    ("& str", "text"),
    ("String", "text"),
    ("& [u8]", "bytes"),
    ("Address", "address"),
    ("AddressList", "address"),
    ("Destination", "address"),
    ("PathBuf", "path"),
    ("bool", "truth"),
    ("f64", "number"),
];

/// Types of ints. Their bounds are those of the type.
const INTS: [&str; 7] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64"];

/// Types that any object has, or that PyO3 makes of all other arguments.
const UNCHECKED: [&str; 4] = ["PyAny", "PyTuple", "PyDict", "Self"];

/// Replaces the checks of a function by PyO3's `from_py_with`, and returns the functions that it names.
pub(crate) fn apply(class: &str, function: &mut Signature, attributes: &[Attribute]) -> syn::Result<Tokens> {
    let mut made = Tokens::new();
    let is_setter = attributes.iter().any(|it| it.path().is_ident("setter"));
    let is_special = is_setter || function.ident.to_string().starts_with("__");
    for argument in &mut function.inputs {
        let FnArg::Typed(argument) = argument else { continue };
        let Pat::Ident(pattern) = &*argument.pat else { continue };
        let name = pattern.ident.to_string();
        let check = match written(argument)? {
            None if is_special || !argument.attrs.is_empty() => None,
            None => of_type(&argument.ty),
            check => check,
        };
        let Some((check, bounds)) = check else { continue };
        let function = format_ident!("check_{}_{}_{}", class, function.ident, name);
        let check = quote!(crate::python::checks::#check);
        let body = if spelled(&argument.ty).starts_with("Option") {
            quote!(if given.is_none() { Ok(None) } else { #check(#name, given, " or None" #bounds).map(Some) })
        } else {
            quote!(#check(#name, given, "" #bounds))
        };
        let mut kind = (*argument.ty).clone();
        Borrowed.visit_type_mut(&mut kind);
        made.extend(quote! {
            #[allow(non_snake_case, clippy::extra_unused_lifetimes, clippy::needless_lifetimes)]
            fn #function<'a, 'py>(
                given: &'a ::pyo3::Bound<'py, ::pyo3::PyAny>,
            ) -> ::pyo3::PyResult<#kind> {
                #body
            }
        });
        argument.attrs.push(parse_quote!(#[pyo3(from_py_with = #function)]));
    }
    Ok(made)
}

/// Takes the check that a parameter names, with its bounds.
fn written(argument: &mut PatType) -> syn::Result<Option<(Path, Tokens)>> {
    let is_check = |name: &str| CHECKS.contains(&name);
    let found = argument.attrs.iter().position(|it| is_check(&it.path().to_token_stream().to_string()));
    let Some(found) = found else { return Ok(None) };
    let attribute = argument.attrs.remove(found);
    let bounds: Punctuated<Expr, Token![,]> = match &attribute.meta {
        Meta::List(list) => list.parse_args_with(Punctuated::parse_terminated)?,
        _ => Punctuated::new(),
    };
    let bounds = bounds.iter().map(|bound| quote!(, #bound)).collect();
    Ok(Some((attribute.path().clone(), bounds)))
}

/// Returns the check that all parameters of a type have, with its bounds.
fn of_type(kind: &Type) -> Option<(Path, Tokens)> {
    let text = spelled(kind);
    let text = text.strip_prefix("Option < ").map_or(&*text, |inner| inner.trim_end_matches(" >"));
    if INTS.contains(&text) {
        let int = format_ident!("{text}");
        return Some((parse_quote!(within), quote!(, #int::MIN, #int::MAX)));
    }
    let found = OF_TYPES.iter().find(|(begin, _)| text == *begin).map(|(_, check)| *check);
    let is_object = |begin: &str| {
        text.strip_prefix(begin).is_some_and(|rest| {
            let class = rest.trim_end_matches([' ', '>']).rsplit(' ').next().unwrap_or_default();
            !UNCHECKED.contains(&class)
        })
    };
    let check = match found {
        None if is_object("& Bound < ") => "instance",
        None if is_object("Py < ") => "object",
        None if text.strip_prefix("& ").is_some_and(|class| syn::parse_str::<syn::Ident>(class).is_ok()) => {
            "frozen"
        }
        found => found?,
    };
    let check = format_ident!("{check}");
    Some((parse_quote!(#check), Tokens::new()))
}

fn spelled(kind: &Type) -> String {
    kind.to_token_stream().to_string()
}

/// Names the lifetimes of what is borrowed from an argument.
struct Borrowed;

impl VisitMut for Borrowed {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime = Some(Lifetime::new("'a", Span::call_site()));
        visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident != "a" {
            *lifetime = Lifetime::new("'py", Span::call_site());
        }
    }
}
