/**
 * Bounds what boots at once on a node (PLATFORM_BOOTS_AT_ONCE). Boots that share a machine all finish late, and on a small one past
 * their deadlines; boots that take turns finish one after the other. Each waits in line for a place, and its deadline begins with
 * the place.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Semaphore from "effect/Semaphore";

type Within = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;

interface Places {
  /** Cuts a session branch within a place of its own: the processes of git are the first that a new session starts. */
  readonly branch: Within;
  /** Boots a sandbox within a place. */
  readonly boot: Within;
  /** Sandboxes that boot here now, and those that wait for a place. */
  readonly state: () => { readonly booting: number; readonly waiting: number };
}

/** Without a bound where no layer sets one. */
export const BootPlaces = Context.Reference<Places>("platform/actors/BootPlaces", {
  defaultValue: () => ({
    branch: (work) => work,
    boot: (work) => work,
    state: () => ({ booting: 0, waiting: 0 }),
  }),
});

/** A line for so many places: first come, first served, and whoever is interrupted leaves it. */
const makeLine = (places: number) => {
  const semaphore = Semaphore.makeUnsafe(places);
  let [inside, waiting] = [0, 0];
  const within: Within = (work) =>
    Effect.suspend(() => {
      waiting += 1;
      let isIn = false;
      const enter = Effect.sync(() => {
        isIn = true;
        waiting -= 1;
        inside += 1;
      });
      const leave = Effect.sync(() => {
        if (isIn) inside -= 1;
        else waiting -= 1;
      });
      return Effect.ensuring(semaphore.withPermit(Effect.andThen(enter, work)), leave);
    });
  return { within, state: () => ({ inside, waiting }) };
};

export const bootPlacesLayer = (atOnce: number): Layer.Layer<never> =>
  Layer.sync(BootPlaces, () => {
    const [branches, boots] = [makeLine(atOnce), makeLine(atOnce)];
    return {
      branch: branches.within,
      boot: boots.within,
      state: () => {
        const { inside, waiting } = boots.state();
        return { booting: inside, waiting };
      },
    };
  });
