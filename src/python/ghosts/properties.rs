//! The compiled form of a ghost class: its properties, and the descriptors by which objects access them.

use super::*;

use crate::python::fields::FieldType;
use crate::python::shape::Shape;
use crate::replication::{Condition, GhostClass, Rule, Velocity};
use crate::wire::{self, Kind, Property as CoreProperty, Schema};

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
    name: String,
    pub(in crate::python) class: Arc<GhostClass>,
    attributes: Arc<[Attribute]>,
    defaults: OnceLock<Vec<Vec<u8>>>,
    /// The property names of a mask, by mask.
    names: Mutex<HashMap<u64, Py<PyTuple>>>,
    rules: HashMap<String, RuleSpec>,
    /// The column of the ghosts' network ids, where something refers to them.
    number_column: Option<usize>,
    /// What the game calls the condition that it decides itself, if there is one.
    chosen: Option<String>,
}

/// The Python part of a property; the core has the rest.
#[derive(Debug)]
struct Attribute {
    name: Py<PyString>,
    shape: Arc<Shape>,
    field_type: Py<FieldType>,
    /// Of a reference: the class that it is to, or its name.
    reference: Option<Py<PyAny>>,
}

#[pymethods]
impl Properties {
    #[new]
    fn new(
        name: String,
        fields: Vec<(String, Bound<'_, FieldType>, String)>,
        capacity: &Bound<'_, PyAny>,
        rules: HashMap<String, RuleSpec>,
        coded: bool,
        references: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let capacity = bounded(&format!("{name}: capacity"), capacity, 1, MAX_CAPACITY)?;
        if fields.is_empty() {
            refuse!(PyTypeError, "{name} has no properties: a ghost must have one");
        }
        let wrong = |error: &dyn Display| PyValueError::new_err(format!("{name}: {error}"));
        let kinds = fields.iter().map(|(name, field_type, _)| (name.clone(), field_type.get().kind.clone()));
        let schema = Schema::new(kinds).map_err(|error| wrong(&error))?;
        let properties = wire::Properties::new(schema).map_err(|error| wrong(&error))?;
        let conditions = fields.iter().map(|(_, _, condition)| condition_of(condition));
        let conditions: Vec<Condition> = conditions.collect::<PyResult<_>>()?;
        let mut chosen: Option<String> = None;
        for (field, _, condition) in &fields {
            let Some(said) = condition.strip_prefix(WHEN) else { continue };
            let known = chosen.get_or_insert_with(|| said.to_owned());
            if known != said {
                return Err(PyValueError::new_err(format!(
                    "{name}.{field}: tw.world.when must have only one name in a class, '{known}', not also \
                     '{said}': declare a second class"
                )));
            }
        }
        let class = GhostClass::new(name.clone(), properties, conditions, capacity);
        let class = class.map_err(value_error)?.with_coding(coded);
        let class =
            with_rules(class, &rules).map_err(|error| PyValueError::new_err(format!("{name}.{error}")))?;
        let attributes = fields.into_iter().map(|(name, field_type, _)| {
            Ok(Attribute {
                reference: references.get_item(&name)?.map(Bound::unbind),
                name: PyString::intern(field_type.py(), &name).unbind(),
                shape: field_type.get().shape.clone(),
                field_type: field_type.unbind(),
            })
        });
        Ok(Properties {
            attributes: attributes.collect::<PyResult<_>>()?,
            defaults: OnceLock::new(),
            name,
            class: Arc::new(class),
            names: Mutex::default(),
            rules,
            number_column: None,
            chosen,
        })
    }

    #[getter]
    fn references<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for attribute in self.attributes.iter() {
            if let Some(reference) = &attribute.reference {
                all.set_item(&attribute.name, reference)?;
            }
        }
        Ok(all)
    }

    properties! {
        rules: HashMap<String, RuleSpec> = self.rules.clone();
        pub(in crate::python) name: &str = &self.name;
        pub(super) capacity: u32 = self.class.capacity;
        coded: bool = self.class.coded;
    }

    #[getter]
    fn fields(&self, py: Python<'_>) -> Vec<(Py<PyString>, Py<FieldType>, String)> {
        let each = self.attributes.iter().zip(&self.class.conditions);
        each.map(|(a, said)| (a.name.clone_ref(py), a.field_type.clone_ref(py), self.condition_name(*said)))
            .collect()
    }

    fn set_defaults(&self, ghost: &Bound<'_, PyAny>) -> PyResult<()> {
        let defaults = self.values(ghost, |property, value| match value.is_none() {
            true => Ok(NO_GHOST),
            false => Err(wrong_class(value.py(), self, property, value)),
        })?;
        // A class is declared once.
        let _ = self.defaults.set(defaults);
        Ok(())
    }
}

impl Properties {
    /// The properties of a class made by `@tickwire.ghost`.
    pub(in crate::python) fn of<'py>(class: &Bound<'py, PyAny>) -> Option<Bound<'py, Properties>> {
        let py = class.py();
        let own = class.cast::<PyType>().ok()?.getattr(intern!(py, "__dict__")).ok()?;
        own.get_item(intern!(py, "__tickwire_properties__")).ok()?.cast_into().ok()
    }

    /// The same with one more property, which nobody sees: the number by which references know a ghost.
    ///
    /// # Errors
    /// It has as many properties as there may be, or as large ones.
    pub(super) fn numbered(&self) -> PyResult<Properties> {
        let wrong = |error: &dyn Display| PyValueError::new_err(format!("{}: {error}", self.name));
        let class = &self.class;
        let fields = class.properties.schema().fields().iter();
        let kinds = fields.map(|field| (field.name().to_owned(), field.kind().clone()));
        let number = (NUMBER_NAME.to_owned(), Kind::Bits { bits: 32 });
        let schema = Schema::new(kinds.chain([number])).map_err(|error| wrong(&error))?;
        let properties = wire::Properties::new(schema).map_err(|error| wrong(&error))?;
        let conditions: Vec<_> = class.conditions.iter().copied().chain([Condition::Initial]).collect();
        let numbered = GhostClass::new(self.name.clone(), properties, conditions, class.capacity);
        let numbered = numbered.map_err(value_error)?.with_coding(class.coded);
        let numbered = numbered.with_rules(class.rules.iter().copied().enumerate());
        let class = numbered.map_err(|error| wrong(&error))?;
        Ok(self.with_class(class, Some(self.len())))
    }

    /// The same for a server with this many ticks a second: properties move by their velocities.
    pub(in crate::python) fn at_rate(&self, rate: f64) -> Properties {
        self.with_class((*self.class).clone().at_rate(rate), self.number_column)
    }

    fn with_class(&self, class: GhostClass, number_column: Option<usize>) -> Properties {
        Properties {
            name: self.name.clone(),
            class: Arc::new(class),
            attributes: self.attributes.clone(),
            defaults: self.defaults.clone(),
            names: Mutex::default(),
            rules: self.rules.clone(),
            number_column,
            chosen: self.chosen.clone(),
        }
    }

    /// The column of network ids, if the class has it.
    pub(super) fn number_column(&self) -> Option<usize> {
        self.number_column
    }

    /// What a property is a reference to, if it is one: a class, or its name.
    pub(super) fn reference(&self, property: usize) -> Option<&Py<PyAny>> {
        self.attributes.get(property)?.reference.as_ref()
    }

    /// The mask of the properties that the game knows.
    pub(super) fn visible(&self) -> u64 {
        u64::MAX.unbounded_shr(64 - self.attributes.len() as u32)
    }

    /// What the game calls the condition that it decides itself.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    fn condition_name(&self, condition: Condition) -> String {
        match condition {
            Condition::Always => String::new(),
            Condition::Initial => "initial".into(),
            Condition::OwnerOnly => "owner_only".into(),
            Condition::ExceptOwner => "except_owner".into(),
            Condition::Chosen => format!("{WHEN}{}", self.chosen().unwrap_or_default()),
        }
    }

    /// How many properties the game knows.
    pub(super) fn len(&self) -> usize {
        self.attributes.len()
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
        ghost: &Bound<'_, PyAny>,
        number_of: impl Fn(usize, &Bound<'_, PyAny>) -> PyResult<u32>,
    ) -> PyResult<Vec<Vec<u8>>> {
        let each = (0..self.len()).map(|property| {
            let value = ghost.getattr(self.attribute_name(ghost.py(), property))?;
            if !self.core(property).has_words() {
                return self.body(property, &value);
            }
            if self.reference(property).is_some() {
                return Ok(number_of(property, &value)?.to_le_bytes().to_vec());
            }
            let mut cell = vec![0; self.core(property).field().node().size()];
            self.cell(property, &value, &mut cell)?;
            Ok(cell)
        });
        each.collect()
    }

    /// The core's part of a property.
    pub(super) fn core(&self, property: usize) -> &CoreProperty {
        &self.class.properties.each()[property]
    }

    pub(super) fn shape(&self, property: usize) -> &Shape {
        &self.attributes[property].shape
    }

    pub(super) fn property_name(&self, property: usize) -> &str {
        self.core(property).field().name()
    }

    pub(super) fn attribute_name<'py>(&self, py: Python<'py>, property: usize) -> &Bound<'py, PyString> {
        self.attributes[property].name.bind(py)
    }

    /// The property with this name.
    ///
    /// # Errors
    /// Lists the names that exist.
    pub(super) fn named(&self, name: &str) -> Result<usize, String> {
        let found = (0..self.len()).find(|property| self.property_name(*property) == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = (0..self.len()).map(|property| self.property_name(property)).collect();
            format!("{} has no property {name:?}, only {}", self.name, names.join(", "))
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
    pub(super) fn cell(&self, property: usize, object: &Bound<'_, PyAny>, cell: &mut [u8]) -> PyResult<()> {
        store(self.shape(property), self.core(property).field().node(), object, cell)
            .map_err(|refusal| refusal.raise(&self.name, self.property_name(property), object))
    }

    /// The body for a value of a property without words.
    ///
    /// # Errors
    /// FieldError or FieldTypeError, when it can't be written.
    pub(super) fn body(&self, property: usize, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let mut writer = BitWriter::new();
        self.shape(property)
            .write(self.core(property).field().node(), object, &mut writer)
            .map_err(|refusal| refusal.raise(&self.name, self.property_name(property), object))?;
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
    ) -> PyResult<Bound<'py, PyAny>> {
        self.shape(property).load::<CONVERT>(py, self.core(property).field().node(), body, at)
    }
}

/// A declared rule: its name, that of its velocity's property, and two numbers.
type RuleSpec = (String, Option<String>, f64, f64);

/// Applies the declared rules to a class.
fn with_rules(class: GhostClass, said: &HashMap<String, RuleSpec>) -> Result<GhostClass, String> {
    let place = |name: &str| {
        let mut fields = class.properties.each().iter().map(|property| property.field().name());
        fields.position(|field| field == name)
    };
    let mut rules = Vec::new();
    for (name, (rule, velocity, first, second)) in said {
        let Some(property) = place(name) else { continue };
        let velocity = || {
            let other = velocity.as_deref().unwrap_or_default();
            let property = place(other).ok_or_else(|| format!("{name}: there is no property {other:?}"))?;
            Ok::<_, String>(Velocity { property, rate: DEFAULT_RATE })
        };
        let natural = Rule::of(class.properties.each()[property].field());
        let rule = match rule.as_str() {
            "linear" => Rule::Linear,
            "angular" if natural != Rule::Linear => natural,
            "angular" => Rule::Angle { lo: *first, turn: second - first },
            "slerp" => Rule::Slerp,
            "hermite" => Rule::Hermite(velocity()?),
            "threshold" => Rule::Reckoned { velocity: velocity()?, threshold: *first },
            _ => Rule::Step,
        };
        let rule = if matches!(rule, Rule::Step) && said[name].0 == "angular" {
            return Err(format!(
                "{name}: tw.world.angular must be for one number, on a circle of finite length"
            ));
        } else {
            rule
        };
        rules.push((property, rule));
    }
    class.with_rules(rules).map_err(|error| error.to_string())
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
    properties: Py<Properties>,
    place: usize,
}

#[pymethods]
impl Property {
    #[new]
    fn new(properties: Bound<'_, Properties>, place: usize) -> PyResult<Self> {
        let count = properties.get().len();
        if place >= count {
            refuse!(PyValueError, "place must be 0 to {}, not {place}", count - 1);
        }
        Ok(Property { properties: properties.unbind(), place })
    }

    properties! {
        name: &str = self.properties.get().property_name(self.place);
        field_type: Py<FieldType> = self.properties.get().attributes[self.place].field_type.clone_ref(py);
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        ghost: &Bound<'py, PyAny>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = owner;
        if ghost.is_none() {
            return Ok(slf.clone().into_any());
        }
        let Property { properties, place } = slf.get();
        Ghost::get(live(ghost)?, properties.get(), *place)
    }

    fn __set__(&self, ghost: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Ghost::set(live(ghost)?, self.properties.get(), self.place, value)
    }

    fn __repr__(&self) -> String {
        let properties = self.properties.get();
        format!("<Property {}.{}>", properties.name, properties.property_name(self.place))
    }
}

fn live<'a, 'py>(ghost: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Ghost>> {
    ghost.cast().map_err(|_| PyAttributeError::new_err("only objects of ghost classes have properties"))
}
