/** Tables of records: what each column shows of a record. */
import { table, time } from "../terminal.ts";

/** A field by its name, or a text of the record. Null is shown as a dash. */
export type Cell<Item> = (keyof Item & string) | ((item: Item) => string | number | null);
/** In the order of the table, by heading. */
export type Columns<Item> = Readonly<Record<string, Cell<Item>>>;

/** The API's instants have such names. */
const INSTANT = /(?:^|_)at$/;

const cellText = <Item>(item: Item, cell: Cell<Item>): string => {
  if (typeof cell === "function") return String(cell(item) ?? "-");
  const value: unknown = item[cell];
  if (value === null || value === undefined) return "-";
  return typeof value === "string" && INSTANT.test(cell) ? time(value) : String(value);
};

/** @param none the text if there are no records */
export const recordTable = <Item>(columns: Columns<Item>, items: readonly Item[], none: string): string =>
  table(
    Object.keys(columns),
    items.map((item) => Object.values(columns).map((cell) => cellText(item, cell))),
    none,
  );
