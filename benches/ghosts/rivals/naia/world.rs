//! A world for naia, which brings none: entities are numbers, each with its few components. What these scenes don't use
//! isn't there: publishing, delegation and copies of entities.

use naia_shared::{
    ComponentFieldUpdate, ComponentKind, ComponentKinds, ComponentUpdate, EntityAndGlobalEntityConverter,
    GlobalWorldManagerType, LocalEntityAndGlobalEntityConverter, ReplicaDynMutTrait, ReplicaDynMutWrapper,
    ReplicaDynRefTrait, ReplicaDynRefWrapper, ReplicaMutTrait, ReplicaMutWrapper, ReplicaRefTrait,
    ReplicaRefWrapper, Replicate, ReplicatedComponent, SerdeErr, WorldMutType, WorldRefType,
};

type Components = Vec<(ComponentKind, Box<dyn Replicate>)>;

#[derive(Default)]
pub(super) struct World {
    /// By entity.
    rows: Vec<Option<Components>>,
}

impl World {
    fn components(&self, entity: u32) -> Option<&Components> {
        self.rows.get(entity as usize)?.as_ref()
    }

    fn components_mut(&mut self, entity: u32) -> Option<&mut Components> {
        self.rows.get_mut(entity as usize)?.as_mut()
    }

    fn of_kind(&self, entity: u32, kind: ComponentKind) -> Option<&dyn Replicate> {
        let found = self.components(entity)?.iter().find(|(it, _)| *it == kind);
        found.map(|(_, component)| component.as_ref())
    }

    fn of_kind_mut(&mut self, entity: u32, kind: ComponentKind) -> Option<&mut dyn Replicate> {
        let (_, component) = self.components_mut(entity)?.iter_mut().find(|(it, _)| *it == kind)?;
        Some(component.as_mut())
    }

    pub(super) fn get<R: Replicate>(&self, entity: u32) -> Option<&R> {
        self.of_kind(entity, ComponentKind::of::<R>())?.to_any().downcast_ref()
    }

    pub(super) fn get_mut<R: Replicate>(&mut self, entity: u32) -> Option<&mut R> {
        self.of_kind_mut(entity, ComponentKind::of::<R>())?.to_any_mut().downcast_mut()
    }
}

/// Components as naia wants to be given them.
struct Got<T>(T);

impl<R: Replicate> ReplicaRefTrait<R> for Got<&R> {
    fn to_ref(&self) -> &R {
        self.0
    }
}

impl<R: Replicate> ReplicaRefTrait<R> for Got<&mut R> {
    fn to_ref(&self) -> &R {
        self.0
    }
}

impl<R: Replicate> ReplicaMutTrait<R> for Got<&mut R> {
    fn to_mut(&mut self) -> &mut R {
        self.0
    }
}

impl ReplicaDynRefTrait for Got<&dyn Replicate> {
    fn to_dyn_ref(&self) -> &dyn Replicate {
        self.0
    }
}

impl ReplicaDynRefTrait for Got<&mut dyn Replicate> {
    fn to_dyn_ref(&self) -> &dyn Replicate {
        self.0
    }
}

impl ReplicaDynMutTrait for Got<&mut dyn Replicate> {
    fn to_dyn_mut(&mut self) -> &mut dyn Replicate {
        self.0
    }
}

/// Reading, by either reference.
macro_rules! readable {
    ($world:ty) => {
        impl WorldRefType<u32> for $world {
            fn has_entity(&self, entity: &u32) -> bool {
                self.components(*entity).is_some()
            }

            fn entities(&self) -> Vec<u32> {
                (0..self.rows.len() as u32).filter(|entity| self.has_entity(entity)).collect()
            }

            fn has_component<R: ReplicatedComponent>(&self, entity: &u32) -> bool {
                self.has_component_of_kind(entity, &ComponentKind::of::<R>())
            }

            fn has_component_of_kind(&self, entity: &u32, kind: &ComponentKind) -> bool {
                self.of_kind(*entity, *kind).is_some()
            }

            fn component<'a, R: ReplicatedComponent>(
                &'a self,
                entity: &u32,
            ) -> Option<ReplicaRefWrapper<'a, R>> {
                self.get::<R>(*entity).map(|component| ReplicaRefWrapper::new(Got(component)))
            }

            fn component_of_kind<'a>(
                &'a self,
                entity: &u32,
                kind: &ComponentKind,
            ) -> Option<ReplicaDynRefWrapper<'a>> {
                self.of_kind(*entity, *kind).map(|component| ReplicaDynRefWrapper::new(Got(component)))
            }
        }
    };
}

readable!(&World);
readable!(&mut World);

impl WorldMutType<u32> for &mut World {
    fn spawn_entity(&mut self) -> u32 {
        self.rows.push(Some(Components::new()));
        self.rows.len() as u32 - 1
    }

    fn local_duplicate_entity(&mut self, _: &u32) -> u32 {
        unreachable!()
    }

    fn local_duplicate_components(&mut self, _: &u32, _: &u32) {
        unreachable!()
    }

    fn despawn_entity(&mut self, entity: &u32) {
        self.rows[*entity as usize] = None;
    }

    fn component_kinds(&mut self, entity: &u32) -> Vec<ComponentKind> {
        self.components(*entity).map(|all| all.iter().map(|(kind, _)| *kind).collect()).unwrap_or_default()
    }

    fn component_mut<'a, R: ReplicatedComponent>(
        &'a mut self,
        entity: &u32,
    ) -> Option<ReplicaMutWrapper<'a, R>> {
        self.get_mut::<R>(*entity).map(|component| ReplicaMutWrapper::new(Got(component)))
    }

    fn component_mut_of_kind<'a>(
        &'a mut self,
        entity: &u32,
        kind: &ComponentKind,
    ) -> Option<ReplicaDynMutWrapper<'a>> {
        self.of_kind_mut(*entity, *kind).map(|component| ReplicaDynMutWrapper::new(Got(component)))
    }

    fn component_apply_update(
        &mut self,
        converter: &dyn LocalEntityAndGlobalEntityConverter,
        entity: &u32,
        kind: &ComponentKind,
        update: ComponentUpdate,
    ) -> Result<(), SerdeErr> {
        self.of_kind_mut(*entity, *kind).map_or(Ok(()), |it| it.read_apply_update(converter, update))
    }

    fn component_apply_field_update(
        &mut self,
        converter: &dyn LocalEntityAndGlobalEntityConverter,
        entity: &u32,
        kind: &ComponentKind,
        update: ComponentFieldUpdate,
    ) -> Result<(), SerdeErr> {
        self.of_kind_mut(*entity, *kind).map_or(Ok(()), |it| it.read_apply_field_update(converter, update))
    }

    fn mirror_entities(&mut self, _: &u32, _: &u32) {
        unreachable!()
    }

    fn mirror_components(&mut self, _: &u32, _: &u32, _: &ComponentKind) {
        unreachable!()
    }

    fn insert_component<R: ReplicatedComponent>(&mut self, entity: &u32, component: R) {
        self.insert_boxed_component(entity, Box::new(component));
    }

    fn insert_boxed_component(&mut self, entity: &u32, component: Box<dyn Replicate>) {
        if let Some(all) = self.components_mut(*entity) {
            all.push((component.kind(), component));
        }
    }

    fn remove_component<R: ReplicatedComponent>(&mut self, entity: &u32) -> Option<R> {
        let component = self.remove_component_of_kind(entity, &ComponentKind::of::<R>())?;
        component.to_boxed_any().downcast().ok().map(|component| *component)
    }

    fn remove_component_of_kind(&mut self, entity: &u32, kind: &ComponentKind) -> Option<Box<dyn Replicate>> {
        let all = self.components_mut(*entity)?;
        let at = all.iter().position(|(it, _)| it == kind)?;
        Some(all.swap_remove(at).1)
    }

    fn entity_publish(
        &mut self,
        _: &ComponentKinds,
        _: &dyn EntityAndGlobalEntityConverter<u32>,
        _: &dyn GlobalWorldManagerType,
        _: &u32,
    ) {
        unreachable!()
    }

    fn component_publish(
        &mut self,
        _: &ComponentKinds,
        _: &dyn EntityAndGlobalEntityConverter<u32>,
        _: &dyn GlobalWorldManagerType,
        _: &u32,
        _: &ComponentKind,
    ) {
        unreachable!()
    }

    fn entity_unpublish(&mut self, _: &u32) {
        unreachable!()
    }

    fn component_unpublish(&mut self, _: &u32, _: &ComponentKind) {
        unreachable!()
    }

    fn entity_enable_delegation(
        &mut self,
        _: &ComponentKinds,
        _: &dyn EntityAndGlobalEntityConverter<u32>,
        _: &dyn GlobalWorldManagerType,
        _: &u32,
    ) {
        unreachable!()
    }

    fn component_enable_delegation(
        &mut self,
        _: &ComponentKinds,
        _: &dyn EntityAndGlobalEntityConverter<u32>,
        _: &dyn GlobalWorldManagerType,
        _: &u32,
        _: &ComponentKind,
    ) {
        unreachable!()
    }

    fn entity_disable_delegation(&mut self, _: &u32) {
        unreachable!()
    }

    fn component_disable_delegation(&mut self, _: &u32, _: &ComponentKind) {
        unreachable!()
    }
}
