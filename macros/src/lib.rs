//! PyO3's attributes, with docstrings from the stub.
//!
//! `python/tickwire/_core.pyi` holds the text of each native name once, for type checkers, editors and the
//! reference. These attributes insert it for `help()`, then apply PyO3's attribute of the same name. A doc
//! comment in Rust wins over the stub.

mod stub;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, quote};
use syn::{Attribute, Ident, ImplItem, Item, ItemFn, ItemImpl, Meta, Type, parse_macro_input};

/// Describes a class, and its fields if they are attributes.
#[proc_macro_attribute]
pub fn pyclass(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as Item);
    match &mut item {
        Item::Struct(class) => {
            let name = class.ident.to_string();
            describe(&mut class.attrs, &name);
            for field in &mut class.fields {
                if let Some(ident) = &field.ident {
                    describe(&mut field.attrs, &format!("{name}.{ident}"));
                }
            }
        }
        Item::Enum(class) => describe(&mut class.attrs, &class.ident.to_string()),
        _ => {}
    }
    let arguments = Tokens::from(arguments);
    quote!(#[::pyo3::pyclass(#arguments)] #item).into()
}

/// Describes the methods and properties of a class.
#[proc_macro_attribute]
pub fn pymethods(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as ItemImpl);
    if let Some(class) = class_name(&item.self_ty) {
        for member in &mut item.items {
            if let ImplItem::Fn(method) = member {
                let name = python_name(&method.attrs, &method.sig.ident);
                describe(&mut method.attrs, &format!("{class}.{name}"));
            }
        }
    }
    quote!(#[::pyo3::pymethods] #item).into()
}

/// Describes a function.
#[proc_macro_attribute]
pub fn pyfunction(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as ItemFn);
    let name = python_name(&item.attrs, &item.sig.ident);
    describe(&mut item.attrs, &name);
    let arguments = Tokens::from(arguments);
    quote!(#[::pyo3::pyfunction(#arguments)] #item).into()
}

fn describe(attributes: &mut Vec<Attribute>, name: &str) {
    if attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
        return;
    }
    if let Some(text) = stub::docstrings().get(name) {
        attributes.push(syn::parse_quote!(#[doc = #text]));
    }
}

fn class_name(class: &Type) -> Option<String> {
    let Type::Path(class) = class else { return None };
    class.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Returns the name that PyO3 gives to a function: `name = "..."`, or its own without `get_` of a getter.
fn python_name(attributes: &[Attribute], ident: &Ident) -> String {
    for attribute in attributes {
        let Meta::List(list) = &attribute.meta else { continue };
        let arguments = list.tokens.to_token_stream().to_string();
        if list.path.is_ident("getter") {
            return arguments;
        }
        if list.path.is_ident("pyo3")
            && let Some((_, name)) = arguments.split_once("name = \"")
            && arguments.starts_with("name = ")
        {
            return name.split('"').next().unwrap_or_default().to_owned();
        }
    }
    let name = ident.to_string();
    let name = name.trim_start_matches("r#");
    let is_getter = attributes.iter().any(|attribute| attribute.path().is_ident("getter"));
    name.strip_prefix("get_").filter(|_| is_getter).unwrap_or(name).to_owned()
}
