//! PyO3's attributes, with docstrings and signatures from the stub.
//!
//! `python/tickwire/_core.pyi` says once what each native name takes and does, for type checkers, editors and
//! the reference. These attributes insert both, then apply PyO3's attribute of the same name. A doc comment or
//! a `#[pyo3(signature = ...)]` in Rust wins over the stub.
//!
//! In `#[pymethods]`, a block `properties! { name: Type = expression; }` declares getters, and special methods
//! by their names, and `one, other(): Type of object;` those of an object's fields or methods; the expressions may use `self` and `py`. A block `methods! { name(parameters) -> Type = expression; }` declares methods of one expression, `aliases! { name = method(last arguments); }` declares other names of methods,
//! `closes!()` a context manager that closes, `replaces!()` a method that changes some of the constructor's arguments, `traverses!(self.field)` what the garbage collector visits, and `endpoint!()` the
//! methods of all endpoints. Parameters may name their check: `#[within(low, high)]`, `#[whole(low, high)]`,
//! `#[count]`, `#[seconds(high)]`, `#[instant]`, `#[number]` or `#[truth]`; an `Option` takes None as well.

mod check;
mod endpoint;
mod properties;
mod record;
mod stub;

use crate::stub::Parameter;
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, quote};
use syn::{
    Attribute, FnArg, Ident, ImplItem, Item, ItemFn, ItemImpl, ItemStruct, Meta, Pat, Signature, Type,
};
use syn::{parse_macro_input, parse_quote};

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

/// Makes a class of the fields of a struct: see the module `record`.
#[proc_macro_attribute]
pub fn record(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let class = parse_macro_input!(item as ItemStruct);
    record::expand(arguments.into(), class).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Describes the methods and properties of a class.
#[proc_macro_attribute]
pub fn pymethods(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as ItemImpl);
    let mut checks = Tokens::new();
    if let Some(class) = class_name(&item.self_ty) {
        if let Err(error) = properties::expand(&class, &mut item.items) {
            return error.into_compile_error().into();
        }
        for member in &mut item.items {
            let ImplItem::Fn(method) = member else { continue };
            let name = format!("{class}.{}", python_name(&method.attrs, &method.sig.ident));
            describe(&mut method.attrs, &name);
            sign(&mut method.attrs, &method.sig, &name);
            match check::apply(&class, &mut method.sig, &method.attrs) {
                Ok(made) => checks.extend(made),
                Err(error) => return error.into_compile_error().into(),
            }
        }
    }
    quote!(#[::pyo3::pymethods] #item #checks).into()
}

/// Describes a function.
#[proc_macro_attribute]
pub fn pyfunction(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = parse_macro_input!(item as ItemFn);
    let name = python_name(&item.attrs, &item.sig.ident);
    describe(&mut item.attrs, &name);
    sign(&mut item.attrs, &item.sig, &name);
    let checks = match check::apply("", &mut item.sig, &item.attrs) {
        Ok(checks) => checks,
        Err(error) => return error.into_compile_error().into(),
    };
    let arguments = Tokens::from(arguments);
    quote!(#[::pyo3::pyfunction(#arguments)] #item #checks).into()
}

fn describe(attributes: &mut Vec<Attribute>, name: &str) {
    if attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
        return;
    }
    if let Some(text) = stub::entries().get(name).and_then(|entry| entry.docstring.as_ref()) {
        attributes.push(parse_quote!(#[doc = #text]));
    }
}

/// Adds the signature that the stub has, unless the function has one or takes nothing.
fn sign(attributes: &mut Vec<Attribute>, function: &Signature, name: &str) {
    attributes.push(parse_quote!(#[allow(clippy::too_many_arguments)]));
    let is_signed = |it: &Attribute| it.path().is_ident("pyo3") && tokens_of(it).starts_with("signature");
    let is_property = |it: &Attribute| ["getter", "setter"].iter().any(|kind| it.path().is_ident(kind));
    if attributes.iter().any(|it| is_signed(it) || is_property(it)) {
        return;
    }
    let name = if attributes.iter().any(|it| it.path().is_ident("new")) {
        format!("{}.__new__", name.split('.').next().unwrap_or_default())
    } else {
        name.to_owned()
    };
    let is_special = name.contains(".__") && !["__new__", "__exit__"].iter().any(|it| name.ends_with(it));
    let entry = stub::entries().get(&name);
    let Some(parameters) = entry.and_then(|entry| entry.parameters.as_ref()).filter(|_| !is_special) else {
        return;
    };
    let own: Vec<_> = function.inputs.iter().filter_map(typed).collect();
    let mut is_shown = true;
    // A function with `settings` takes the parameters that it doesn't name itself in there.
    let takes_settings = own.iter().any(|(name, _)| name == "settings");
    let is_own = |it: &&Parameter| it.name == "*" || own.iter().any(|(name, _)| *name == it.name);
    let named = parameters.iter().filter(|it| !takes_settings || is_own(it));
    let signature = named.map(|parameter| {
        let Some(default) = &parameter.default else { return parameter.name.clone() };
        let given = own.iter().find(|(name, _)| *name == parameter.name).map(|(_, given)| *given);
        let (default, is_literal) = default_of(default, given);
        is_shown &= is_literal;
        format!("{} = {default}", parameter.name)
    });
    let mut signature = signature.collect::<Vec<_>>();
    if takes_settings {
        signature.push("**settings".into());
        is_shown = false;
    }
    let signature = signature.join(", ");
    match signature.parse::<Tokens>() {
        Ok(signature) if !signature.is_empty() => {
            attributes.push(parse_quote!(#[pyo3(signature = (#signature))]));
        }
        _ => return,
    }
    if !is_shown {
        let receiver = if function.receiver().is_some() { "$self, " } else { "" };
        let shown = parameters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let shown = format!("({receiver}{shown})");
        attributes.push(parse_quote!(#[pyo3(text_signature = #shown)]));
    }
}

/// Writes a default of Python in Rust, for a parameter of a type. False if PyO3 can't show it in Python again.
fn default_of(default: &str, given: Option<&Type>) -> (String, bool) {
    let text = given.map(|given| given.to_token_stream().to_string()).unwrap_or_default();
    let (default, is_literal) = match default {
        "None" if text.starts_with("Vec") => return ("vec![]".into(), false),
        "None" => return ("None".into(), true),
        "True" => ("true".into(), true),
        "False" => ("false".into(), true),
        _ if ["Option < & Bound", "Option < & Object"].iter().any(|it| text.starts_with(it)) => {
            return ("None".into(), false);
        }
        "()" => ("vec![]".into(), false),
        string if text == "String" => (format!("{string}.into()"), false),
        time if text.contains("Duration") => (format!("crate::time::Duration::from_secs_f64({time})"), false),
        whole if text.contains("f64") && whole.parse::<i64>().is_ok() => (format!("{whole}.0"), true),
        other => (other.to_owned(), true),
    };
    if text.starts_with("Option") { (format!("Some({default})"), false) } else { (default, is_literal) }
}

/// Returns a parameter's name and type.
fn typed(argument: &FnArg) -> Option<(String, &Type)> {
    let FnArg::Typed(argument) = argument else { return None };
    let Pat::Ident(pattern) = &*argument.pat else { return None };
    Some((pattern.ident.to_string(), &argument.ty))
}

fn tokens_of(attribute: &Attribute) -> String {
    match &attribute.meta {
        Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

fn class_name(class: &Type) -> Option<String> {
    let Type::Path(class) = class else { return None };
    class.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Returns the name that PyO3 gives to a function: `name = "..."`, or its own without `get_` of a getter.
fn python_name(attributes: &[Attribute], ident: &Ident) -> String {
    for attribute in attributes {
        let arguments = tokens_of(attribute);
        if attribute.path().is_ident("getter") && !arguments.is_empty() {
            return arguments;
        }
        if attribute.path().is_ident("pyo3")
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
