//! `endpoint!()` in `#[pymethods]`: what servers, clients and peers have in common.
//!
//! `endpoint!(client: ClientHandle)` names the parameter by which methods take a peer. The class has a field `endpoint`,
//! implements `Facade`, and finds a peer by `self.peer(client)?`, or by `self.peer()?` if there is only one. A method that the stub
//! doesn't have, or the class itself has, is left out.

use crate::stub;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, ImplItem, ImplItemFn, ItemImpl, Token, Type};

pub(crate) struct PeerParameter(Option<(Ident, Type)>);

impl Parse for PeerParameter {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(PeerParameter(None));
        }
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(PeerParameter(Some((name, input.parse()?))))
    }
}

/// Makes the methods of a class.
pub(crate) fn methods(
    class: &str,
    PeerParameter(peer): PeerParameter,
    own: &[ImplItemFn],
) -> syn::Result<Vec<ImplItem>> {
    let (parameter, peer, client) = match peer {
        Some((name, kind)) => (
            quote!(#name: &Bound<'_, #kind>,),
            quote!(self.peer(#name)?),
            quote!(#name.as_any().cast().ok().map(|client| client.clone().unbind())),
        ),
        None => (Tokens::new(), quote!(self.peer()?), quote!(None)),
    };
    let mut all = running(class)?;
    all.extend(sending(&parameter, &peer, &client)?);
    let name_of = |item: &ImplItem| match item {
        ImplItem::Fn(method) => method.sig.ident.to_string(),
        _ => String::new(),
    };
    let is_own = |name: &str| own.iter().any(|method| method.sig.ident == name);
    all.retain(|item| {
        let name = name_of(item);
        stub::entries().contains_key(&format!("{class}.{name}")) && !is_own(&name)
    });
    Ok(all)
}

fn running(class: &str) -> syn::Result<Vec<ImplItem>> {
    let close = stub::entries().get(&format!("{class}.close")).and_then(|entry| entry.parameters.as_ref());
    let gives_reason = close.is_some_and(|close| close.iter().any(|parameter| parameter.name == "reason"));
    let (reason, given) = match gives_reason {
        true => (quote!(reason: Option<&Bound<'_, PyAny>>,), quote!(reason)),
        false => (Tokens::new(), quote!(None)),
    };
    items(quote! {
        #[getter]
        fn address(&self) -> crate::python::address::Address {
            self.endpoint.address
        }
        #[getter]
        fn network(&self, py: Python<'_>) -> Option<Py<crate::python::network::SimulatedNetwork>> {
            self.endpoint.network.as_ref().map(|network| network.clone_ref(py))
        }
        #[getter]
        fn protocol(&self, py: Python<'_>) -> Py<crate::python::protocol::Protocol> {
            self.endpoint.protocol.clone_ref(py)
        }
        #[getter]
        fn closed(&self) -> PyResult<bool> {
            self.endpoint.closed()
        }
        #[getter]
        fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, ::pyo3::types::PyDict>> {
            self.endpoint.counters(py)
        }
        fn tick(slf: Py<Self>) -> crate::python::facade::Tick {
            crate::python::facade::Tick(Box::new(slf))
        }
        fn receive(&self, py: Python<'_>) -> PyResult<crate::python::inbox::Inbox> {
            self.receive_tick(py)
        }
        fn flush(&self, py: Python<'_>) -> PyResult<()> {
            self.flush_tick(py)
        }
        fn pump(&self, py: Python<'_>) -> PyResult<()> {
            self.prepare(py)?;
            self.endpoint.pump(py)
        }
        fn _step(&self, py: Python<'_>) -> PyResult<f64> {
            self.step(py)
        }
        #[getter]
        fn _moves_chunks(&self) -> PyResult<bool> {
            self.endpoint.moves_chunks()
        }
        #[getter]
        fn _has_news(&self) -> PyResult<bool> {
            Ok(self.has_own_news()? || self.endpoint.has_news()?)
        }
        fn _fileno(&self, py: Python<'_>) -> PyResult<i64> {
            self.endpoint.fileno(py)
        }
        fn close(&self, py: Python<'_>, #[number] linger: f64, #reason #[truth] wait: bool) -> PyResult<()> {
            self.close_all(py, linger, #given, wait)
        }
        fn __enter__(slf: Py<Self>) -> Py<Self> {
            slf
        }
        fn __exit__(
            &self,
            py: Python<'_>,
            kind: &Bound<'_, PyAny>,
            value: &Bound<'_, PyAny>,
            traceback: &Bound<'_, PyAny>,
        ) -> PyResult<()> {
            let _ = (kind, value, traceback);
            self.close_all(py, 0.0, None, true)
        }
    })
}

fn sending(parameter: &Tokens, peer: &Tokens, client: &Tokens) -> syn::Result<Vec<ImplItem>> {
    items(quote! {
        fn send(
            &self,
            #parameter
            message: &Bound<'_, PyAny>,
            channel: Option<&Bound<'_, PyAny>>,
            key: Option<&Bound<'_, PyAny>>,
            tag: Option<&Bound<'_, PyAny>>,
            #[truth] notify: bool,
        ) -> PyResult<Py<PyAny>> {
            let sending = crate::python::kind::Sending { message, channel, key, tag, notify };
            self.endpoint.send(#peer, sending)
        }
        fn send_payload(
            &self,
            py: Python<'_>,
            #parameter
            data: &[u8],
            channel: &Bound<'_, PyAny>,
            #[within(0, u32::MAX)] tag: u32,
        ) -> PyResult<Py<PyAny>> {
            self.endpoint.send_payload(py, #peer, data, channel, tag)
        }
        fn send_chunk(
            &self,
            #parameter
            data: &Bound<'_, PyAny>,
            label: &str,
            #[truth] burst: bool,
            #[truth] ask_first: bool,
        ) -> PyResult<crate::python::chunks::Transfer> {
            self.endpoint.send_chunk(#peer, #client, data, label, burst, ask_first)
        }
        fn incoming_chunks(
            &self,
            py: Python<'_>,
            #parameter
        ) -> PyResult<Vec<crate::python::chunks::IncomingChunk>> {
            let own: Option<Py<crate::python::events::ClientHandle>> = #client;
            self.endpoint.incoming_chunks(py, #peer, own.as_ref())
        }
        fn request<'py>(
            &self,
            py: Python<'py>,
            #parameter
            call: &Bound<'py, PyAny>,
            args: &Bound<'py, ::pyo3::types::PyTuple>,
            kwargs: Option<&Bound<'py, ::pyo3::types::PyDict>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            self.endpoint.request(py, #peer, call, args, kwargs)
        }
        fn implement(&self, call: &Bound<'_, PyAny>, function: &Bound<'_, PyAny>) -> PyResult<()> {
            self.endpoint.implement(call, function)
        }
    })
}

fn items(methods: Tokens) -> syn::Result<Vec<ImplItem>> {
    syn::parse2::<ItemImpl>(quote!(impl Class { #methods })).map(|block| block.items)
}
