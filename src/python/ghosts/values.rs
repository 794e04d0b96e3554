//! The values of ghosts: from cells and bodies to objects, and back.

use super::*;

/// A copied cell; most fit without an allocation.
enum Copied {
    Small([u8; 32], usize),
    Large(Vec<u8>),
}

impl Copied {
    #[inline]
    fn zeroed(size: usize) -> Self {
        if size <= 32 { Copied::Small([0; 32], size) } else { Copied::Large(vec![0; size]) }
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Copied::Small(bytes, size) => &mut bytes[..*size],
            Copied::Large(bytes) => bytes,
        }
    }
}

impl GhostRows {
    /// The value of a property.
    pub(super) fn value<'py>(&self, py: Python<'py>, row: u32, property: usize) -> PyResult<Object<'py>> {
        let properties = self.properties.get();
        let core = properties.core(property);
        if properties.is_reference(property) {
            return self.referred(py, property, self.reference_number(row, property));
        }
        if core.has_words() {
            let mut cell = Copied::zeroed(core.field().node().size());
            self.cells.column(property).read(row as usize, cell.bytes());
            return properties.load::<true>(py, property, cell.bytes(), 0);
        }
        match self.cells.body(row, property) {
            Some(body) => properties.load::<true>(py, property, &body, core.field().offset()),
            // The client isn't sent this value, or hasn't got it yet.
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// The number in a reference of a row.
    pub(super) fn reference_number(&self, row: u32, property: usize) -> u32 {
        let mut cell = [0; 4];
        self.cells.column(property).read(row as usize, &mut cell);
        u32::from_le_bytes(cell)
    }

    /// What a reference with this number is to: a ghost, or None.
    pub(super) fn referred<'py>(
        &self,
        py: Python<'py>,
        property: usize,
        number: u32,
    ) -> PyResult<Object<'py>> {
        let target = self.links.target(py, (self.index, property), number)?;
        Ok(target.map_or_else(|| py.None().into_bound(py), Bound::into_any))
    }

    /// The number by which references know a row, if they may.
    pub(super) fn network_id(&self, row: u32) -> Option<u32> {
        let column = self.properties.get().number_column()?;
        Some(self.reference_number(row, column)).filter(|number| *number != NO_GHOST)
    }

    /// The value of a property with words, without conversion to the game's own types.
    pub(super) fn plain_value<'py>(
        &self,
        py: Python<'py>,
        row: u32,
        property: usize,
    ) -> PyResult<Object<'py>> {
        let memory = self.cells.column(property);
        let mut cell = Copied::zeroed(memory.size());
        memory.read(row as usize, cell.bytes());
        self.properties.get().load::<false>(py, property, cell.bytes(), 0)
    }

    /// Changes a property, on a server.
    pub(super) fn assign(&self, row: u32, property: usize, value: &Object<'_>) -> PyResult<()> {
        let properties = self.properties.get();
        let Some(server) = &self.server else {
            let (class, name) = (properties.name(), properties.property_name(property));
            return Err(GhostError::new_err(if self.is_view {
                format!(
                    "{class}.{name} of row {row} can't be set in a view or a rewound world: set it in the \
                     server's world"
                )
            } else {
                format!(
                    "{class}.{name} of row {row} can't be set on a client: only its server can, so send it a message"
                )
            }));
        };
        let core = properties.core(property);
        if properties.is_reference(property) {
            let number = self.links.number_of(self, property, value)?;
            self.cells.assign(row, property, &number.to_le_bytes());
            return Ok(());
        }
        if core.has_words() {
            let mut cell = Copied::zeroed(core.field().node().size());
            properties.cell(property, value, cell.bytes())?;
            self.cells.assign(row, property, cell.bytes());
            return Ok(());
        }
        let body = properties.body(property, value)?;
        // A world whose server is gone is plain memory.
        if let Some(shared) = server.upgrade() {
            core::set_value(&mut *shared.lock()?, self.index, row, property, &body);
        }
        self.cells.keep_body(row, property, body);
        Ok(())
    }

    /// Whether this is its class, or derived from it by a client.
    pub(super) fn is_of(&self, class: &Object<'_>) -> bool {
        self.class.is(class) || self.slots.class().is(class)
    }

    /// Gives a row the class's default values of properties without words.
    pub(super) fn keep_default_bodies(&self, row: u32) {
        self.cells.write_values(row, self.properties.get().defaults(), self.cells.without_words());
    }

    /// Gives a row the values without words of an object that isn't live.
    pub(super) fn keep_bodies_of(&self, row: u32, ghost: &Bound<'_, Ghost>) {
        self.keep_default_bodies(row);
        let properties = self.properties.get();
        for property in (0..properties.len()).filter(|property| !properties.core(*property).has_words()) {
            let value = Ghost::get(ghost, properties, property);
            if let Ok(body) = value.and_then(|value| properties.body(property, &value)) {
                self.cells.keep_body(row, property, body);
            }
        }
    }

    /// Checks the values of an object that is to become a row.
    pub(super) fn check(&self, ghost: &Object<'_>) -> PyResult<Checked> {
        let number_of = |property, value: &Object<'_>| self.links.number_of(self, property, value);
        self.properties.get().values(ghost, number_of).map(Checked)
    }
}
