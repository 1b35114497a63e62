/** Styles that a module brings along as text, minified (Vite's `?inline`). */
declare module "*.css?inline" {
  const text: string;
  // eslint-disable-next-line import/no-default-export -- the bundler's form
  export default text;
}
