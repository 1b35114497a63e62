/** What the simulation and the thread of the store say to each other: plain values that can be cloned. */
export type Order =
  /** A call of a service of the store's port; `life` has its own connections, `null` those of no node that dies. */
  | {
      readonly do: "call";
      readonly life: string | null;
      readonly service: string;
      readonly path: readonly string[];
      /** null: it is no function, but an effect. */
      readonly given: readonly unknown[] | null;
    }
  /** A new, migrated database; all lives are over. */
  | { readonly do: "begin" }
  /** A life's connections are ended. */
  | { readonly do: "kill"; readonly life: string }
  /** All connections of all lives are ended at once, or with the so-many-th call from here on. */
  | { readonly do: "disconnect"; readonly after: number }
  /** The server is killed and restarted. */
  | { readonly do: "restart" }
  | { readonly do: "query"; readonly text: string; readonly values: readonly unknown[] }
  /** Several queries that see one instant: their rows. */
  | { readonly do: "snapshot"; readonly texts: readonly string[] }
  | { readonly do: "close" };

/** The database's own fault: all connections end, now or with one of the next calls, or the server is killed. */
export const databaseFault = (which: number, how: number): Order => {
  if (which % 4 === 1) return { do: "restart" };
  return { do: "disconnect", after: which % 4 === 2 ? 0 : 1 + (how % 40) };
};

export interface Asked {
  readonly id: number;
  readonly order: Order;
}

export type Outcome =
  | { readonly is: "done"; readonly value: unknown }
  | { readonly is: "failed"; readonly tag: string; readonly fields: unknown }
  | { readonly is: "defect"; readonly message: string };

export interface Answer {
  readonly id: number;
  readonly outcome: Outcome;
}
