//! The compiled form of a ghost class: its properties, and the descriptors by which objects access them.

use super::*;

use crate::python::shape::Shape;
use crate::replication::{Condition, GhostClass, Rule, Velocity};
use crate::wire::{self, Kind, Property as CoreProperty};

/// The maximum of a class's ghosts: ids have this many bits.
const MAX_CAPACITY: u32 = 1 << 16;

/// The ticks a second of a server whose protocol has no rate.
pub(super) const DEFAULT_RATE: f64 = 60.0;

/// What the names of conditions that the game decides itself begin with.
const WHEN: &str = "when:";

/// What the property is called that has network ids.
pub(super) const NUMBER_NAME: &str = "(id)";

#[pyclass(frozen, module = "tickwire._core")]
#[derive(Debug)]
pub(crate) struct Properties {
    pub(super) schema: Py<Schema>,
    pub(in crate::python) class: Arc<GhostClass>,
    defaults: OnceLock<Vec<Vec<u8>>>,
    /// The property names of a mask, by mask.
    names: Mutex<HashMap<u64, Py<PyTuple>>>,
    /// What errors call the targets of references.
    references: Arc<[Option<String>]>,
    /// The mask of the references.
    referring: u64,
    /// The column of the ghosts' network ids, where something refers to them.
    number_column: Option<usize>,
    /// What the game calls the condition that it decides itself, if there is one.
    chosen: Option<String>,
    declared: Py<PyAny>,
}

#[pymethods]
impl Properties {
    #[new]
    fn new(
        schema: Bound<'_, Schema>,
        conditions: Vec<String>,
        capacity: &Object<'_>,
        rules: Vec<RuleSpec>,
        coded: bool,
        references: Vec<Option<String>>,
        declared: Py<PyAny>,
    ) -> PyResult<Self> {
        let (name, core) = (schema.get().name(), schema.get().fields.core.clone());
        let capacity = bounded(&format!("{name}: capacity"), capacity, 1, MAX_CAPACITY)?;
        if conditions.is_empty() {
            refuse!(PyTypeError, "{name} has no properties: a ghost must have one");
        }
        let properties = wire::Properties::new(core).map_err(|error| wrong(name, &error))?;
        let each = conditions.iter().map(|said| condition_of(said)).collect::<PyResult<Vec<_>>>()?;
        let class = GhostClass::new(name.to_owned(), properties, each, capacity).map_err(value_error)?;
        let rules = rules.iter().map(|said| rule_of(&class, said)).collect::<PyResult<Vec<_>>>()?;
        let class = class.with_coding(coded).with_rules(rules);
        let class = class.map_err(|error| PyValueError::new_err(format!("{name}.{error}")))?;
        Ok(Properties {
            class: Arc::new(class),
            defaults: OnceLock::new(),
            names: Mutex::default(),
            referring: (0..).zip(&references).fold(0, |mask, (i, it)| mask | u64::from(it.is_some()) << i),
            references: references.into(),
            number_column: None,
            chosen: conditions.iter().find_map(|said| said.strip_prefix(WHEN)).map(str::to_owned),
            schema: schema.unbind(),
            declared,
        })
    }

    properties! {
        pub(in crate::python) name: &str = self.schema.get().name();
        pub(super) capacity: u32 = self.class.capacity;
        declared: Py<PyAny> = self.declared.clone_ref(py);
    }

    fn set_defaults(&self, ghost: &Object<'_>) -> PyResult<()> {
        let defaults = self.values(ghost, |property, value| match value.is_none() {
            true => Ok(NO_GHOST),
            false => Err(wrong_class(self, property, value)),
        })?;
        // A class is declared once.
        let _ = self.defaults.set(defaults);
        Ok(())
    }

    traverses!(self.declared);
}

impl Properties {
    /// The properties of a class made by `@tickwire.ghost`.
    pub(in crate::python) fn of<'py>(class: &Object<'py>) -> Option<Bound<'py, Properties>> {
        let py = class.py();
        let own = class.cast::<PyType>().ok()?.getattr(intern!(py, "__dict__")).ok()?;
        own.get_item(intern!(py, "__tickwire_properties__")).ok()?.cast_into().ok()
    }

    /// The same properties and one of network ids, for references to the class's ghosts.
    pub(super) fn numbered(&self, py: Python<'_>) -> PyResult<Properties> {
        let (name, class) = (self.name(), &self.class);
        let fields = class.properties.schema().fields().iter();
        let kinds = fields.map(|field| (field.name().to_owned(), field.kind().clone()));
        let number = (NUMBER_NAME.to_owned(), Kind::Bits { bits: 32 });
        let schema = wire::Schema::new(kinds.chain([number])).map_err(|error| wrong(name, &error))?;
        let properties = wire::Properties::new(schema).map_err(|error| wrong(name, &error))?;
        let conditions = class.conditions.iter().copied().chain([Condition::Initial]).collect::<Vec<_>>();
        let numbered = GhostClass::new(name.to_owned(), properties, conditions, class.capacity);
        let numbered = numbered.map_err(value_error)?.with_coding(class.coded);
        let numbered = numbered.with_rules(class.rules.iter().copied().enumerate());
        let class = numbered.map_err(|error| wrong(name, &error))?;
        Ok(self.with_class(py, class, Some(self.len())))
    }

    /// The same for a server with this many ticks a second: properties move by their velocities.
    pub(in crate::python) fn at_rate(&self, py: Python<'_>, rate: f64) -> Properties {
        self.with_class(py, (*self.class).clone().at_rate(rate), self.number_column)
    }

    fn with_class(&self, py: Python<'_>, class: GhostClass, number_column: Option<usize>) -> Properties {
        Properties {
            schema: self.schema.clone_ref(py),
            class: Arc::new(class),
            defaults: self.defaults.clone(),
            names: Mutex::default(),
            references: self.references.clone(),
            referring: self.referring,
            number_column,
            chosen: self.chosen.clone(),
            declared: self.declared.clone_ref(py),
        }
    }

    pub(super) fn number_column(&self) -> Option<usize> {
        self.number_column
    }

    #[inline]
    pub(super) fn is_reference(&self, property: usize) -> bool {
        self.referring >> property & 1 == 1
    }

    /// The mask of the properties that the game knows.
    pub(super) fn visible(&self) -> u64 {
        u64::MAX.unbounded_shr(64 - self.len() as u32)
    }

    /// What the game calls the condition that it decides itself.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    pub(super) fn len(&self) -> usize {
        self.references.len()
    }

    /// The class's default values: cells, and bodies of properties without words.
    pub(super) fn defaults(&self) -> &[Vec<u8>] {
        self.defaults.get().map_or(&[], Vec::as_slice)
    }

    /// An object's values: cells, and bodies of properties without words.
    ///
    /// # Errors
    /// FieldError or FieldTypeError, when one can't be written.
    pub(super) fn values(
        &self,
        ghost: &Object<'_>,
        number_of: impl Fn(usize, &Object<'_>) -> PyResult<u32>,
    ) -> PyResult<Vec<Vec<u8>>> {
        let each = (0..self.len()).map(|property| {
            let value = ghost.getattr(self.attribute_name(ghost.py(), property))?;
            if !self.core(property).has_words() {
                return self.body(property, &value);
            }
            if self.is_reference(property) {
                return Ok(number_of(property, &value)?.to_le_bytes().to_vec());
            }
            let mut cell = vec![0; self.core(property).field().node().size()];
            self.cell(property, &value, &mut cell)?;
            Ok(cell)
        });
        each.collect()
    }

    /// The core's part of a property.
    #[inline]
    pub(super) fn core(&self, property: usize) -> &CoreProperty {
        &self.class.properties.each()[property]
    }

    #[inline]
    pub(super) fn shape(&self, property: usize) -> &Shape {
        self.schema.get().fields.shape(property)
    }

    pub(super) fn property_name(&self, property: usize) -> &str {
        self.core(property).field().name()
    }

    pub(super) fn attribute_name<'py>(&self, py: Python<'py>, property: usize) -> &Bound<'py, PyString> {
        self.schema.get().fields.name_of(property).bind(py)
    }

    /// The property with this name.
    ///
    /// # Errors
    /// Lists the names that exist.
    pub(super) fn named(&self, name: &str) -> Result<usize, String> {
        let found = (0..self.len()).find(|property| self.property_name(*property) == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = (0..self.len()).map(|property| self.property_name(property)).collect();
            format!("{} has no property {name:?}, only {}", self.name(), names.join(", "))
        })
    }

    /// The names of the properties of a mask.
    pub(super) fn names<'py>(&self, py: Python<'py>, mask: u64) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(known) = lock(&self.names).get(&mask) {
            return Ok(known.bind(py).clone());
        }
        let names = (0..self.len()).filter(|property| mask >> property & 1 == 1);
        let names: Vec<_> = names.map(|property| self.attribute_name(py, property)).collect();
        let names = PyTuple::new(py, names)?;
        // 64 properties have too many masks to keep them all.
        let mut known = lock(&self.names);
        if known.len() < 256 {
            known.insert(mask, names.clone().unbind());
        }
        Ok(names)
    }

    /// The cell for a value of a property with words.
    ///
    /// # Errors
    /// FieldError or FieldTypeError, when it can't be written.
    pub(super) fn cell(&self, property: usize, object: &Object<'_>, cell: &mut [u8]) -> PyResult<()> {
        store(self.shape(property), self.core(property).field().node(), object, cell)
            .map_err(|refusal| refusal.raise(self.name(), self.property_name(property), object))
    }

    /// The body for a value of a property without words.
    ///
    /// # Errors
    /// FieldError or FieldTypeError, when it can't be written.
    pub(super) fn body(&self, property: usize, object: &Object<'_>) -> PyResult<Vec<u8>> {
        let mut writer = BitWriter::new();
        self.shape(property)
            .write(self.core(property).field().node(), object, &mut writer)
            .map_err(|refusal| refusal.raise(self.name(), self.property_name(property), object))?;
        let mut body = Vec::new();
        let mut reader = BitReader::new(writer.as_bytes());
        let read = self.class.properties.read_fields(&mut reader, 1 << property, &mut body);
        read.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(body)
    }

    /// The value in a body at this offset; `CONVERT` as in [`Shape::load`].
    pub(super) fn load<'py, const CONVERT: bool>(
        &self,
        py: Python<'py>,
        property: usize,
        body: &[u8],
        at: usize,
    ) -> PyResult<Object<'py>> {
        self.shape(property).load::<CONVERT>(py, self.core(property).field().node(), body, at)
    }
}

fn wrong(name: &str, error: &dyn Display) -> PyErr {
    PyValueError::new_err(format!("{name}: {error}"))
}

/// A property's place, its rule's name, the place of its velocity, and two numbers.
type RuleSpec = (usize, String, usize, f64, f64);

fn rule_of(class: &GhostClass, said: &RuleSpec) -> PyResult<(usize, Rule)> {
    let (place, name, velocity, first, second) = said;
    let velocity = Velocity { property: *velocity, rate: DEFAULT_RATE };
    let field = class.properties.each()[*place].field();
    let natural = Rule::of(field);
    let rule = match name.as_str() {
        "linear" => Rule::Linear,
        "angular" => match natural {
            Rule::Angle { .. } => natural,
            Rule::Linear => Rule::Angle { lo: *first, turn: second - first },
            _ => {
                let (class, field) = (&class.name, field.name());
                refuse!(PyValueError, "{class}.{field}: tw.world.angular must be for a float or a tw.angle")
            }
        },
        "slerp" => Rule::Slerp,
        "hermite" => Rule::Hermite(velocity),
        "threshold" => Rule::Reckoned { velocity, threshold: *first },
        _ => Rule::Step,
    };
    Ok((*place, rule))
}

fn condition_of(name: &str) -> PyResult<Condition> {
    Ok(match name {
        "" => Condition::Always,
        "initial" => Condition::Initial,
        "owner_only" => Condition::OwnerOnly,
        "except_owner" => Condition::ExceptOwner,
        when if when.starts_with(WHEN) => Condition::Chosen,
        other => return Err(PyValueError::new_err(format!("there is no condition {other:?}"))),
    })
}

#[pyclass(frozen, module = "tickwire._core")]
#[derive(Debug)]
pub(crate) struct Property {
    pub(super) properties: Py<Properties>,
    pub(super) place: usize,
}

#[cold]
pub(super) fn wrong_class(properties: &Properties, property: usize, value: &Object<'_>) -> PyErr {
    let target = properties.references.get(property).and_then(Option::as_deref);
    FieldTypeError::new_err((
        properties.name().to_owned(),
        properties.property_name(property).to_owned(),
        value.clone().unbind(),
        format!("a {} or None", target.unwrap_or_default()),
    ))
}
