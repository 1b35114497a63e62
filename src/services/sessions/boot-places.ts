/**
 * Bounds concurrent boots on a node (PLATFORM_BOOTS_AT_ONCE). Concurrent boots on one machine all finish late, and on a
 * small machine past their deadlines; boots in turn finish one after the other. Each boot waits in line for a place,
 * and its deadline begins with the place.
 *
 *  B1 Projects take turns in the line, and one project holds at most three quarters of the places: a project whose
 *     boots hang delays only itself.
 *  B2 A place is returned however the boot ends. An interrupted boot leaves the line.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";

type Within = <A, E, R>(projectId: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;

interface Places {
  /** Creates a session branch within a place of its own: its git processes are the first that a new session starts. */
  readonly branch: Within;
  /** Boots a sandbox within a place. */
  readonly boot: Within;
  /** How many sandboxes boot here now, and how many wait for a place. */
  readonly state: () => { readonly booting: number; readonly waiting: number };
}

/** Unbounded unless a layer sets a bound. */
export const BootPlaces = Context.Reference<Places>("platform/services/BootPlaces", {
  defaultValue: () => ({
    branch: (_, work) => work,
    boot: (_, work) => work,
    state: () => ({ booting: 0, waiting: 0 }),
  }),
});

/** The share of all places that one project may hold (B1). */
const PROJECT_SHARE = 0.75;

interface Ticket {
  readonly projectId: string;
  state: "new" | "waiting" | "inside" | "left";
  resume: () => void;
}

class Line {
  readonly #places: number;
  readonly #perProject: number;
  readonly #inside = new Map<string, number>();
  /** By project, in the order of their turns. */
  readonly #waiting = new Map<string, Ticket[]>();
  #taken = 0;

  constructor(places: number) {
    this.#places = places;
    this.#perProject = Math.max(1, Math.floor(places * PROJECT_SHARE));
  }

  get state() {
    const waiting = [...this.#waiting.values()].reduce((sum, { length }) => sum + length, 0);
    return { inside: this.#taken, waiting };
  }

  readonly within: Within = (projectId, work) =>
    Effect.suspend(() => {
      const ticket: Ticket = { projectId, state: "new", resume: () => undefined };
      const entry = Effect.callback<void>((resume) => {
        ticket.resume = () => resume(Effect.void);
        ticket.state = "waiting";
        this.#waiting.set(projectId, [...(this.#waiting.get(projectId) ?? []), ticket]);
        this.#serve();
      });
      return Effect.ensuring(
        Effect.andThen(entry, work),
        Effect.sync(() => this.#leave(ticket)),
      );
    });

  /** Gives free places to the next in line. */
  #serve(): void {
    while (this.#taken < this.#places) {
      const next = [...this.#waiting].find(([id]) => (this.#inside.get(id) ?? 0) < this.#perProject);
      if (next === undefined) return;
      const [id, [ticket, ...others]] = next;
      // The project moves to the end of the line.
      this.#waiting.delete(id);
      if (others.length > 0) this.#waiting.set(id, others);
      if (ticket === undefined) continue;
      this.#taken += 1;
      this.#inside.set(id, (this.#inside.get(id) ?? 0) + 1);
      ticket.state = "inside";
      ticket.resume();
    }
  }

  #leave(ticket: Ticket): void {
    const { projectId: id, state } = ticket;
    ticket.state = "left";
    if (state === "waiting") {
      const others = (this.#waiting.get(id) ?? []).filter((other) => other !== ticket);
      if (others.length > 0) this.#waiting.set(id, others);
      else this.#waiting.delete(id);
    }
    if (state !== "inside") return;
    this.#taken -= 1;
    const left = (this.#inside.get(id) ?? 1) - 1;
    if (left > 0) this.#inside.set(id, left);
    else this.#inside.delete(id);
    this.#serve();
  }
}

export const bootPlacesLayer = (atOnce: number): Layer.Layer<never> =>
  Layer.sync(BootPlaces, () => {
    const [branches, boots] = [new Line(atOnce), new Line(atOnce)];
    return {
      branch: branches.within,
      boot: boots.within,
      state: () => ({ booting: boots.state.inside, waiting: boots.state.waiting }),
    };
  });
