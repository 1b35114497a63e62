/** Manifest entries of a connector to the API of pets. */
/** Rules of each kind. */
export const RULES = `
[[connectors.tools]]
match = "delete_*"
policy = "deny"
[[connectors.tools]]
match = "rename_*"
policy = "ask"
[[connectors.tools]]
match = "*"
policy = "allow"
`;

export const openapiEntry = (url: string, more: string): string => `
[[connectors]]
slug = "pets"
kind = "openapi"
url = "${url}"
direct = ["get_pet"]
${more}${RULES}`;
