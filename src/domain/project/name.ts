/** The name as it is compared: no two projects of an account have the same one. Case, width and space around it do not count. */
export const projectNameKey = (name: string): string => name.normalize("NFKC").trim().toLowerCase();
