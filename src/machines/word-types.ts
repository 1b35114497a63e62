/** The form of a machine's sentences for people (words.ts). A missing state, event or command is a type error. */
import type { Named } from "./step.ts";

type ByEvent<State extends string, Event extends Named> = {
  /** One sentence, or one for each state that can follow. */
  readonly [Type in Event["type"]]?: string | { readonly [To in State]?: string };
};

export interface Words<State extends string, Event extends Named, Command extends Named> {
  /** The meaning of a state. */
  readonly states: { readonly [Name in State]: string };
  /** An event that has happened. */
  readonly events: { readonly [Type in Event["type"] | "created"]: string };
  /** What would move the actor from a state. */
  readonly next: { readonly [Name in State]: ByEvent<State, Event> };
  /** The work of a command. */
  readonly commands: { readonly [Type in Command["type"]]: string };
}
