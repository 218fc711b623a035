"""Conan recipe of tollbar: builds the C libraries with Rust, which has to be in PATH, and a C
compiler. No network is used."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, get, rmdir
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class TollbarConan(ConanFile):
    name = "tollbar"
    description = "Rate limiting in nanoseconds: exact, lock-free, in one process or many"
    license = "MIT OR Apache-2.0"
    homepage = "https://github.com/tollbar/tollbar"
    url = "https://github.com/tollbar/tollbar"
    topics = ("rate-limiting", "token-bucket", "gcra", "lock-free")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def configure(self):
        # The libraries have a C face, and are compiled for speed whatever the program is.
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        basic_layout(self, src_folder="src")

    def package_id(self):
        self.info.settings.rm_safe("compiler")
        self.info.settings.rm_safe("build_type")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(
                f"found {self.settings.os} on {self.settings.arch}; expected: Linux on x86_64 or armv8"
            )

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def build(self):
        self.run(f"tools/lib.sh {self.build_folder}/lib 1", cwd=self.source_folder)

    def package(self):
        self.run(f"tools/install.sh {self.package_folder} '' /lib /include {self.build_folder}/lib {self.version} 1", cwd=self.source_folder)
        copy(self, "LICENSE-*", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Conan writes its own.
        for directory in ("lib/pkgconfig", "lib/cmake"):
            rmdir(self, os.path.join(self.package_folder, directory))
        unwanted = ".a" if self.options.shared else ".so"
        for name in os.listdir(os.path.join(self.package_folder, "lib")):
            if unwanted in name:
                os.unlink(os.path.join(self.package_folder, "lib", name))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "tollbar")
        for component, library in (("tollbar", "tollbar"), ("redis", "tollbar-redis")):
            part = self.cpp_info.components[component]
            part.libs = [library]
            part.set_property("cmake_target_name", f"tollbar::{component}")
            part.set_property("pkg_config_name", library)
        self.cpp_info.components["redis"].requires = ["tollbar"]
