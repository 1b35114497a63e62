/** What we use of pg-cursor, which ships no types: a query that is read in portions. */
declare module "pg-cursor" {
  import type { Submittable } from "pg";
  import type { Connection } from "pg";

  export default class Cursor<Row = Record<string, unknown>> implements Submittable {
    constructor(text: string, values?: readonly unknown[], config?: { readonly rowMode?: "array" });
    submit(connection: Connection): void;
    /** Up to `count` further rows; none at the end. */
    read(count: number): Promise<Row[]>;
    close(): Promise<void>;
  }
}
