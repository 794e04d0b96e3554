//! The memory layout of a row in the terms of Python's `struct` module, for use without an array library.

use super::{Column, Node, Schema};
use core::fmt::Write;

/// Collects codes and the padding between them.
struct Format {
    codes: String,
    end: usize,
}

impl Schema {
    /// The format of a row: little-endian, padding written out.
    pub fn row_format(&self) -> String {
        let mut format = Format { codes: "<".into(), end: 0 };
        format.row(self, 0);
        format.codes
    }
}

impl Format {
    fn row(&mut self, schema: &Schema, at: usize) {
        schema.fields().iter().for_each(|field| self.node(field.node(), at + field.offset()));
        self.pad_to(at + schema.row_size());
    }

    fn node(&mut self, node: &Node, at: usize) {
        match node {
            Node::Leaf(leaf) => self.cell(at, &code(leaf.column()), leaf.column().size()),
            Node::Optional(optional) => {
                self.node(optional.item(), at);
                self.cell(at + optional.item().size(), "?", 1);
                self.pad_to(at + node.size());
            }
            Node::List(_) | Node::Sparse(_) | Node::Union(_) => self.cell(at, "2I", 8),
            Node::Nested(schema) => self.row(schema, at),
        }
    }

    fn cell(&mut self, at: usize, code: &str, size: usize) {
        self.pad_to(at);
        self.codes.push_str(code);
        self.end = at + size;
    }

    fn pad_to(&mut self, at: usize) {
        if at > self.end {
            // Writing to a string can't fail.
            let _ = write!(self.codes, "{}x", at - self.end);
            self.end = at;
        }
    }
}

impl Column {
    /// The code of a column of plain numbers.
    pub fn code(self) -> Option<char> {
        let code = code(self);
        let mut letters = code.chars();
        letters.next().filter(|_| letters.next().is_none())
    }
}

fn code(column: Column) -> String {
    let code = match column {
        Column::Bool => "?",
        Column::Uint8 => "B",
        Column::Uint16 => "H",
        Column::Uint32 => "I",
        Column::Uint64 => "Q",
        Column::Int8 => "b",
        Column::Int16 => "h",
        Column::Int32 => "i",
        Column::Int64 => "q",
        Column::Uint128 | Column::Int128 => "16s",
        Column::Float32 => "f",
        Column::Float64 => "d",
        Column::Text | Column::Data => "2I",
        Column::Singles(count) => return format!("{count}f"),
        Column::Doubles(count) => return format!("{count}d"),
    };
    code.into()
}
