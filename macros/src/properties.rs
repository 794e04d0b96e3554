//! `properties! { name: Type = expression; }` in `#[pymethods]`.

use proc_macro2::{TokenStream as Tokens, TokenTree};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Ident, ImplItem, Token, Type, Visibility, parse_quote};

struct Property {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    name: Ident,
    kind: Type,
    value: Expr,
}

struct Properties(Vec<Property>);

impl Parse for Properties {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut properties = Vec::new();
        while !input.is_empty() {
            let attributes = input.call(Attribute::parse_outer)?;
            let visibility = input.parse()?;
            let name = input.parse()?;
            input.parse::<Token![:]>()?;
            let kind = input.parse()?;
            input.parse::<Token![=]>()?;
            let value = input.parse()?;
            input.parse::<Token![;]>()?;
            properties.push(Property { attributes, visibility, name, kind, value });
        }
        Ok(Properties(properties))
    }
}

/// Replaces the blocks by getters.
pub(crate) fn expand(items: &mut Vec<ImplItem>) -> syn::Result<()> {
    let mut expanded = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        match item {
            ImplItem::Macro(block) if block.mac.path.is_ident("properties") => {
                let Properties(properties) = block.mac.parse_body()?;
                expanded.extend(properties.into_iter().map(getter));
            }
            item => expanded.push(item),
        }
    }
    *items = expanded;
    Ok(())
}

fn getter(property: Property) -> ImplItem {
    let Property { attributes, visibility, name, kind, value } = property;
    let says_py = |token| matches!(token, TokenTree::Ident(name) if name == "py");
    let needs_py = flat(quote!(#kind #value)).into_iter().any(says_py);
    let (generics, py) =
        if needs_py { (quote!(<'py>), quote!(, py: Python<'py>)) } else { Default::default() };
    parse_quote! {
        #(#attributes)*
        #[getter]
        #[allow(clippy::needless_lifetimes)]
        #visibility fn #name #generics(&self #py) -> #kind {
            #value
        }
    }
}

/// Returns the tokens, those in brackets as well.
fn flat(tokens: Tokens) -> Vec<TokenTree> {
    let each = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flat(group.stream()),
        token => vec![token],
    });
    each.collect()
}
