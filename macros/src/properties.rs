//! `properties! { name: Type = expression; one, other(): Type of expression; }`, `methods! { name(parameters) -> Type = expression; }`, `aliases! { name = method; }`, `closes!()`, `replaces!()` and `traverses!(self.field)` in `#[pymethods]`.

use crate::{endpoint, stub};
use proc_macro2::{TokenStream as Tokens, TokenTree};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, FnArg, Ident, ImplItem, ImplItemFn, ReturnType, Token, Type, Visibility, parenthesized,
    parse_quote, token,
};

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
            let visibility: Visibility = input.parse()?;
            // Fields of an object, or methods of it.
            let mut names: Vec<(Ident, Tokens)> = Vec::new();
            loop {
                let name = input.parse()?;
                let inside;
                let call = if input.peek(token::Paren) {
                    parenthesized!(inside in input);
                    let given: Tokens = inside.parse()?;
                    quote!((#given))
                } else {
                    Tokens::new()
                };
                names.push((name, call));
                if input.parse::<Option<Token![,]>>()?.is_none() {
                    break;
                }
            }
            input.parse::<Token![:]>()?;
            let kind: Type = input.parse()?;
            let is_one = input.parse::<Option<Token![=]>>()?.is_some();
            if !is_one && input.parse::<Ident>()? != "of" {
                return Err(input.error("expected `=` or `of`"));
            }
            let value: Expr = input.parse()?;
            input.parse::<Token![;]>()?;
            for (name, call) in names {
                let (attributes, visibility) = (attributes.clone(), visibility.clone());
                let value = if is_one { value.clone() } else { parse_quote!(#value.#name #call) };
                properties.push(Property { attributes, visibility, name, kind: kind.clone(), value });
            }
        }
        Ok(Properties(properties))
    }
}

/// A method of one expression.
struct Method {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    name: Ident,
    parameters: Punctuated<FnArg, Token![,]>,
    output: ReturnType,
    value: Expr,
}

struct Methods(Vec<Method>);

impl Parse for Methods {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut methods = Vec::new();
        while !input.is_empty() {
            let attributes = input.call(Attribute::parse_outer)?;
            let (visibility, name) = (input.parse()?, input.parse()?);
            let inside;
            parenthesized!(inside in input);
            let parameters = Punctuated::parse_terminated(&inside)?;
            let output = input.parse()?;
            input.parse::<Token![=]>()?;
            let value = input.parse()?;
            input.parse::<Token![;]>()?;
            methods.push(Method { attributes, visibility, name, parameters, output, value });
        }
        Ok(Methods(methods))
    }
}

struct Alias {
    name: Ident,
    method: Ident,
    /// The last arguments of the method.
    given: Punctuated<Expr, Token![,]>,
}

struct Aliases(Vec<Alias>);

impl Parse for Aliases {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut aliases = Vec::new();
        while !input.is_empty() {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            let (method, mut given) = (input.parse()?, Punctuated::new());
            if input.peek(token::Paren) {
                let inside;
                parenthesized!(inside in input);
                given = Punctuated::parse_terminated(&inside)?;
            }
            aliases.push(Alias { name, method, given });
            input.parse::<Token![;]>()?;
        }
        Ok(Aliases(aliases))
    }
}

/// Replaces the blocks by getters and methods.
pub(crate) fn expand(class: &str, items: &mut Vec<ImplItem>) -> syn::Result<()> {
    let mut expanded = Vec::with_capacity(items.len());
    let methods: Vec<ImplItemFn> = items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Fn(method) => Some(method.clone()),
            _ => None,
        })
        .collect();
    for item in items.drain(..) {
        match item {
            ImplItem::Macro(block) if block.mac.path.is_ident("properties") => {
                let Properties(properties) = block.mac.parse_body()?;
                expanded.extend(properties.into_iter().map(getter));
            }
            ImplItem::Macro(block) if block.mac.path.is_ident("methods") => {
                let Methods(methods) = block.mac.parse_body()?;
                expanded.extend(methods.into_iter().map(method));
            }
            ImplItem::Macro(block) if block.mac.path.is_ident("closes") => expanded.extend(context()),
            ImplItem::Macro(block) if block.mac.path.is_ident("replaces") => expanded.push(replace(class)),
            ImplItem::Macro(block) if block.mac.path.is_ident("traverses") => {
                expanded.push(traverse(&block.mac.parse_body_with(Punctuated::parse_terminated)?));
            }
            ImplItem::Macro(block) if block.mac.path.is_ident("endpoint") => {
                expanded.extend(endpoint::methods(class, block.mac.parse_body()?, &methods)?);
            }
            ImplItem::Macro(block) if block.mac.path.is_ident("aliases") => {
                let Aliases(aliases) = block.mac.parse_body()?;
                for it in aliases {
                    expanded.push(alias(class, it, &methods)?);
                }
            }
            item => expanded.push(item),
        }
    }
    *items = expanded;
    Ok(())
}

fn getter(property: Property) -> ImplItem {
    let Property { attributes, visibility, name, kind, value } = property;
    let (generics, py) = if says("py", quote!(#kind #value)) {
        (quote!(<'py>), quote!(, py: Python<'py>))
    } else {
        Default::default()
    };
    let getter = (!name.to_string().starts_with("__")).then(|| quote!(#[getter]));
    parse_quote! {
        #(#attributes)*
        #getter
        #[allow(clippy::needless_lifetimes)]
        #visibility fn #name #generics(&self #py) -> #kind {
            #value
        }
    }
}

fn method(method: Method) -> ImplItem {
    let Method { attributes, visibility, name, parameters, output, value } = method;
    let is_static = attributes.iter().any(|it| it.path().is_ident("staticmethod"));
    let receiver = (!is_static).then(|| quote!(&self,));
    let generics = says("py", quote!(#parameters #output)).then(|| quote!(<'py>));
    parse_quote! {
        #(#attributes)*
        #[allow(clippy::needless_lifetimes, clippy::extra_unused_lifetimes)]
        #visibility fn #name #generics(#receiver #parameters) #output {
            #value
        }
    }
}

/// Makes the methods of a context manager that closes.
fn context() -> [ImplItem; 2] {
    [
        parse_quote! {
            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }
        },
        parse_quote! {
            #[pyo3(signature = (kind, value, traceback, /))]
            fn __exit__(
                slf: &Bound<'_, Self>,
                kind: &Bound<'_, PyAny>,
                value: &Bound<'_, PyAny>,
                traceback: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                let _ = (kind, value, traceback);
                slf.call_method0(intern!(slf.py(), "close")).map(drop)
            }
        },
    ]
}

/// Makes the method that makes an object anew with some of the constructor's arguments changed.
fn replace(class: &str) -> ImplItem {
    let entry = stub::entries().get(&format!("{class}.__new__"));
    let fields = entry.and_then(|entry| entry.parameters.as_ref()).into_iter().flatten();
    let fields = fields.map(|it| it.name.as_str()).filter(|name| *name != "*");
    parse_quote! {
        fn replace<'py>(
            slf: &Bound<'py, Self>,
            changes: Option<&Bound<'py, ::pyo3::types::PyDict>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            crate::python::settings::replaced(slf.as_any(), &[#(#fields),*], changes)
        }
    }
}

/// Makes the method by which the garbage collector visits what an object holds: objects, or what says so itself.
fn traverse(held: &Punctuated<Expr, Token![,]>) -> ImplItem {
    let each = held.iter();
    parse_quote! {
        fn __traverse__(
            &self,
            visit: ::pyo3::gc::PyVisit<'_>,
        ) -> Result<(), ::pyo3::gc::PyTraverseError> {
            #(crate::python::garbage::Traverse::traverse(&#each, &visit)?;)*
            Ok(())
        }
    }
}

/// Makes a method that calls another one, with the parameters' names of the stub.
fn alias(class: &str, alias: Alias, methods: &[ImplItemFn]) -> syn::Result<ImplItem> {
    let Alias { name, method, given } = alias;
    let unknown = || syn::Error::new(method.span(), "no method to be an alias of");
    let called = methods.iter().find(|it| it.sig.ident == method).ok_or_else(unknown)?;
    let entry = stub::entries().get(&format!("{class}.{name}"));
    let names = entry.and_then(|entry| entry.parameters.as_ref()).into_iter().flatten();
    let names: Vec<Ident> =
        names.filter(|it| it.name != "/").map(|it| Ident::new(&it.name, name.span())).collect();
    let (receiver, kinds): (Vec<_>, Vec<_>) =
        called.sig.inputs.iter().partition(|it| matches!(it, FnArg::Receiver(_)));
    let kinds = kinds.into_iter().filter_map(|it| match it {
        FnArg::Typed(argument) => Some((&argument.attrs, &argument.ty)),
        FnArg::Receiver(_) => None,
    });
    let inputs = names.iter().zip(kinds).map(|(name, (checks, kind))| quote!(#(#checks)* #name: #kind));
    let (generics, output) = (&called.sig.generics, &called.sig.output);
    Ok(parse_quote! {
        fn #name #generics(#(#receiver,)* #(#inputs),*) #output {
            Self::#method(self, #(#names,)* #given)
        }
    })
}

/// Whether a name is among the tokens.
fn says(name: &str, tokens: Tokens) -> bool {
    flat(tokens).iter().any(|token| matches!(token, TokenTree::Ident(found) if found == name))
}

/// Returns the tokens, those in brackets as well.
fn flat(tokens: Tokens) -> Vec<TokenTree> {
    let each = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flat(group.stream()),
        token => vec![token],
    });
    each.collect()
}
