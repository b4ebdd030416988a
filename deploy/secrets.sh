#!/bin/sh
# Makes the suite's secrets on the gateway that faas-cli is logged in to:
#
#   farmhand-token                         of dispatcher and controller, and of their clients
#   farmhand-redis                         password of Redis
#   basic-auth-user, basic-auth-password   of the gateway, for the controller
#
# Their values are kept in the folder .secrets ($SECRETS names another one), a file
# each: the first two are drawn at random, the others are read from the cluster with
# kubectl. A file that you put there is taken as it is. A secret that exists is left
# alone, so this may be run again.
set -eu
umask 077
dir=${SECRETS:-.secrets}

fail() {
  echo "secrets: $*" >&2
  exit 1
}

exists() {
  list=$(faas-cli secret list) || fail "faas-cli cannot list the secrets: log in first (faas-cli login), at the gateway that OPENFAAS_URL names"
  printf '%s\n' "$list" | awk '{print $1}' | grep -qx "$1"
}

draw() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

of_the_gateway() {
  kubectl --namespace openfaas get secret basic-auth --output "jsonpath={.data.$1}" | base64 -d
}

# make NAME COMMAND…: the secret, with what the command prints where there is no file.
make_secret() {
  name=$1
  file=$dir/$name
  shift
  if exists "$name"; then
    [ -s "$file" ] && echo "$name: is there" || echo "$name: is there, but not its value in $file"
    return
  fi
  if [ ! -s "$file" ]; then
    "$@" > "$file.new" && [ -s "$file.new" ] || { rm -f "$file.new"; fail "$name cannot be read from the cluster: put its value into $file"; }
    mv "$file.new" "$file"
  fi
  faas-cli secret create "$name" --from-file "$file" > /dev/null
  exists "$name" || fail "$name was not made" # faas-cli says so, and exits with 0
  echo "$name: made from $file"
}

command -v faas-cli > /dev/null || fail "faas-cli is missing: https://docs.openfaas.com/cli/install"
mkdir -p "$dir"
make_secret farmhand-token draw
make_secret farmhand-redis draw
make_secret basic-auth-user of_the_gateway basic-auth-user
make_secret basic-auth-password of_the_gateway basic-auth-password
