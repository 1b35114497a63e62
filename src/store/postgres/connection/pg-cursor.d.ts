/** The part of pg-cursor that we use. It ships no types. It runs a query whose rows are read in portions. */
declare module "pg-cursor" {
  import type { Submittable } from "pg";
  import type { Connection } from "pg";

  export default class Cursor<Row = Record<string, unknown>> implements Submittable {
    constructor(text: string, values?: readonly unknown[], config?: { readonly rowMode?: "array" });
    submit(connection: Connection): void;
    /** Up to `count` further rows. Empty at the end. */
    read(count: number): Promise<Row[]>;
    close(): Promise<void>;
  }
}
