//! `#[record(module = "...")]`: a class that is made of its fields, as a dataclass is.
//!
//! Its fields are attributes, and it shows like the call that makes it. If the stub has a `__new__`, that takes the
//! fields, which may name their checks as parameters do, and a `replace` in the stub makes one with other fields. A class
//! without a `__new__` is an event: its fields are match arguments. `#[record(checked, ...)]` calls `check(&self, py)` on
//! every new object; other arguments go to PyO3's `pyclass`.

use crate::stub;
use proc_macro2::{TokenStream as Tokens, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Field, Fields, Ident, ItemStruct};

pub(crate) fn expand(arguments: Tokens, mut class: ItemStruct) -> syn::Result<Tokens> {
    let Fields::Named(fields) = &mut class.fields else {
        return Err(syn::Error::new_spanned(&class, "a record has named fields"));
    };
    let of_parameters: Vec<Vec<Attribute>> = fields.named.iter_mut().map(take_checks).collect();
    let fields: Vec<Field> = fields.named.iter().cloned().collect();
    let names: Vec<&Ident> = fields.iter().filter_map(|field| field.ident.as_ref()).collect();
    let shown: Vec<String> = names.iter().map(ToString::to_string).collect();
    let (ident, (is_checked, arguments)) = (&class.ident, without_checked(arguments));
    let entry = |member: &str| stub::entries().get(&format!("{ident}.{member}"));

    let held = fields.iter().filter(|field| holds_objects(field)).map(|field| &field.ident);
    let held: Vec<_> = held.map(|name| quote!(self.#name)).collect();
    let traverses = (!held.is_empty()).then(|| quote!(traverses!(#(#held),*);));
    let replaces = entry("replace").map(|_| quote!(replaces!();));
    let (mut positional, mut made) = (0, Tokens::new());
    match entry("__new__").and_then(|entry| entry.parameters.as_ref()) {
        Some(parameters) => {
            positional = parameters.iter().position(|it| it.name == "*").unwrap_or(parameters.len());
            let kinds = fields.iter().map(|field| &field.ty);
            let check = is_checked.then(|| quote!(made.check(py)?;));
            made = quote! {
                #[new]
                fn new(py: Python<'_>, #(#(#of_parameters)* #names: #kinds),*) -> PyResult<Self> {
                    let (_, made) = (py, #ident { #(#names),* });
                    #check
                    Ok(made)
                }
            };
        }
        None => {
            made.extend(quote! {
                #[classattr]
                fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
                    PyTuple::new(py, [#(#shown),*]).map(Bound::unbind)
                }
            });
        }
    }
    Ok(quote! {
        #[::tickwire_macros::pyclass(frozen, get_all, #arguments)]
        #class

        #[::tickwire_macros::pymethods]
        impl #ident {
            #made

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                crate::python::events::shown(slf.as_any(), &[#(#shown),*], #positional)
            }

            #replaces
            #traverses
        }
    })
}

/// Takes the checks of a field, which are those of its parameter.
fn take_checks(field: &mut Field) -> Vec<Attribute> {
    let (own, checks) = field.attrs.drain(..).partition(|it| it.path().is_ident("doc"));
    field.attrs = own;
    checks
}

/// Takes the argument `checked` out of those of the class.
fn without_checked(arguments: Tokens) -> (bool, Tokens) {
    let is_it = |token: &TokenTree| matches!(token, TokenTree::Ident(name) if name == "checked");
    let mut rest = arguments.clone().into_iter().peekable();
    if !rest.peek().is_some_and(is_it) {
        return (false, arguments);
    }
    (true, rest.skip(2).collect())
}

fn holds_objects(field: &Field) -> bool {
    field.ty.to_token_stream().to_string().contains("Py <")
}
