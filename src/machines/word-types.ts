/** The sentences for people that a machine carries in its `meta`. Each state has its own as its `description`. */
import type { Named } from "./step.ts";

type ByEvent<State extends string, Event extends Named> = {
  /** One sentence, or one for each state that can follow. */
  readonly [Type in Event["type"]]?: string | { readonly [To in State]?: string };
};

export interface Words<State extends string, Event extends Named, Command extends Named> {
  /** Of the machine: an event that has happened. */
  readonly events?: { readonly [Type in Event["type"] | "created"]: string };
  /** Of the machine: the work of a command. */
  readonly commands?: { readonly [Type in Command["type"]]: string };
  /** Of a state: what would move the actor from it. */
  readonly next?: ByEvent<State, Event>;
}
