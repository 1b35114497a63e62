/** Each icon alone: the package's own types name all 2,000. */
declare module "lucide/dist/esm/icons/*.mjs" {
  /** Its shapes, in a square of 24. */
  const icon: readonly (readonly [
    shape: "circle" | "line" | "path" | "rect" | "polyline",
    attributes: Readonly<Record<string, string>>,
  ])[];
  // eslint-disable-next-line import/no-default-export -- the package's form
  export default icon;
}
