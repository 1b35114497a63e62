/**
 * The name as it is compared: no two projects of an account have the same one. Case, width, invisible characters and space around it do
 * not count.
 */
export const projectNameKey = (name: string): string =>
  name
    .normalize("NFKC")
    .replaceAll(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, "")
    .trim()
    .toLowerCase();
