//! `properties! { name: Type = expression; }` in `#[pymethods]`.

use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Ident, ImplItem, Token, Type, parse_quote};

struct Property {
    attributes: Vec<Attribute>,
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
            let name = input.parse()?;
            input.parse::<Token![:]>()?;
            let kind = input.parse()?;
            input.parse::<Token![=]>()?;
            let value = input.parse()?;
            input.parse::<Token![;]>()?;
            properties.push(Property { attributes, name, kind, value });
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
    let Property { attributes, name, kind, value } = property;
    parse_quote! {
        #(#attributes)*
        #[getter]
        #[allow(unused_variables, clippy::needless_lifetimes)]
        fn #name<'py>(&self, py: Python<'py>) -> #kind {
            #value
        }
    }
}
