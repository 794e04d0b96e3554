//! Checks of parameters, such as `#[within(1, 64)] count: u32`.

use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Expr, FnArg, Meta, Pat, Signature, Token, parse_quote};

const CHECKS: [&str; 6] = ["within", "seconds", "instant", "int", "number", "truth"];

/// Replaces the checks of a function by PyO3's `from_py_with`, and returns the functions that it names.
pub(crate) fn apply(class: &str, function: &mut Signature) -> syn::Result<Tokens> {
    let mut made = Tokens::new();
    for argument in &mut function.inputs {
        let FnArg::Typed(argument) = argument else { continue };
        let Pat::Ident(pattern) = &*argument.pat else { continue };
        let is_check = |name: &str| CHECKS.contains(&name);
        let found = argument.attrs.iter().position(|it| is_check(&it.path().to_token_stream().to_string()));
        let Some(found) = found else { continue };
        let attribute = argument.attrs.remove(found);
        let bounds: Punctuated<Expr, Token![,]> = match &attribute.meta {
            Meta::List(list) => list.parse_args_with(Punctuated::parse_terminated)?,
            _ => Punctuated::new(),
        };
        let bounds = bounds.iter().map(|bound| quote!(, #bound)).collect::<Tokens>();
        let (check, kind) = (attribute.path(), &argument.ty);
        let name = pattern.ident.to_string();
        let function = format_ident!("check_{}_{}_{}", class, function.ident, pattern.ident);
        let check = quote!(crate::python::checks::#check);
        let body = if kind.to_token_stream().to_string().starts_with("Option") {
            quote!(if given.is_none() { Ok(None) } else { #check(#name, given, " or None" #bounds).map(Some) })
        } else {
            quote!(#check(#name, given, "" #bounds))
        };
        made.extend(quote! {
            #[allow(non_snake_case)]
            fn #function(given: &::pyo3::Bound<'_, ::pyo3::PyAny>) -> ::pyo3::PyResult<#kind> {
                #body
            }
        });
        argument.attrs.push(parse_quote!(#[pyo3(from_py_with = #function)]));
    }
    Ok(made)
}
